//! The contenders: three servers, each as durable as its users may choose.

use clap::ValueEnum;

/// A server and how it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Contender {
    /// Hand-written ZSET scripts, appendfsync no
    RedisNo,
    /// Hand-written ZSET scripts, appendfsync everysec
    RedisEverysec,
    /// Hand-written ZSET scripts, appendfsync always
    RedisAlways,
    /// Without a log
    Beanstalkd,
    /// With a log that is synced every 50 ms
    BeanstalkdF50,
    /// With a log that is synced for each job
    BeanstalkdF0,
    /// Over RESP, synced before each answer
    RespSynced,
    /// Over RESP, synced every 50 ms
    RespRelaxed,
    /// Over the beanstalkd protocol, synced before each answer
    BeanstalkSynced,
    /// Over the beanstalkd protocol, synced every 50 ms
    BeanstalkRelaxed,
}

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    Redis,
    Beanstalkd,
    Dormouse,
}

/// The protocol it is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// RESP, with hand-written ZSET scripts.
    ZsetScripts,
    /// RESP, with the verbs of Dormouse.
    Verbs,
    Beanstalk,
}

impl Contender {
    pub(super) fn all() -> &'static [Contender] {
        Contender::value_variants()
    }

    pub(super) fn maker(self) -> Maker {
        match self {
            Contender::RedisNo | Contender::RedisEverysec | Contender::RedisAlways => Maker::Redis,
            Contender::Beanstalkd | Contender::BeanstalkdF50 | Contender::BeanstalkdF0 => {
                Maker::Beanstalkd
            }
            _ => Maker::Dormouse,
        }
    }

    pub(super) fn dialect(self) -> Dialect {
        match self {
            Contender::RespSynced | Contender::RespRelaxed => Dialect::Verbs,
            _ if self.maker() == Maker::Redis => Dialect::ZsetScripts,
            _ => Dialect::Beanstalk,
        }
    }

    /// Whether it takes and acks many jobs with one command.
    pub(super) fn has_batches(self) -> bool {
        self.dialect() == Dialect::Verbs
    }

    /// For tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Contender::RedisNo => "Redis scripts, fsync no",
            Contender::RedisEverysec => "Redis scripts, everysec",
            Contender::RedisAlways => "Redis scripts, always",
            Contender::Beanstalkd => "beanstalkd, no log",
            Contender::BeanstalkdF50 => "beanstalkd -f 50",
            Contender::BeanstalkdF0 => "beanstalkd -f 0",
            Contender::RespSynced => "Dormouse RESP, synced",
            Contender::RespRelaxed => "Dormouse RESP, relaxed 50",
            Contender::BeanstalkSynced => "Dormouse beanstalk, synced",
            Contender::BeanstalkRelaxed => "Dormouse beanstalk, relaxed 50",
        }
    }

    /// For names of figures.
    pub(super) fn key(self) -> &'static str {
        match self {
            Contender::RedisNo => "redis_no",
            Contender::RedisEverysec => "redis_everysec",
            Contender::RedisAlways => "redis_always",
            Contender::Beanstalkd => "beanstalkd",
            Contender::BeanstalkdF50 => "beanstalkd_f50",
            Contender::BeanstalkdF0 => "beanstalkd_f0",
            Contender::RespSynced => "resp_synced",
            Contender::RespRelaxed => "resp_relaxed",
            Contender::BeanstalkSynced => "beanstalk_synced",
            Contender::BeanstalkRelaxed => "beanstalk_relaxed",
        }
    }
}
