//! A certificate authority, and the certificates it issues.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::pki_types::CertificateDer;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL takes a certificate with the name of its issuer for one that is self-signed.
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let (pem, certificate) = (certificate.pem(), certificate.der().clone());
        Authority { issuer: Issuer::new(params, key), certificate, pem }
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Writes the authority's own certificate, for `--ca-file`.
    pub(crate) fn write(&self, dir: &Path) -> PathBuf {
        let path = dir.join("ca.pem");
        std::fs::write(&path, &self.pem).unwrap();
        path
    }

    /// Issues a certificate for `localhost` and 127.0.0.1 and writes it and its key to `cert.pem`
    /// and `key.pem`.
    pub(crate) fn issue(&self, dir: &Path) -> CertificateDer<'static> {
        self.issue_until(dir, 2049)
    }

    /// Issues one that expires on the first day of a year.
    pub(crate) fn issue_until(&self, dir: &Path, year: i32) -> CertificateDer<'static> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(dir.join("cert.pem"), certificate.pem()).unwrap();
        std::fs::write(dir.join("key.pem"), key.serialize_pem()).unwrap();
        certificate.der().clone()
    }
}
