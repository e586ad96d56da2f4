//! Changes by time alone: ends of delays, reservations, pauses and waits.

use crate::compare::Compare;
use crate::ids::Ids;
use crate::pair::{Pair, Servers};
use crate::script::Script;
use crate::server::Server;
use crate::setup::Setup;

/// Who says what, and how many replies are waited for. What takes no second must happen within one,
/// on both sides.
///
/// Debian's original, 1.12, sometimes sleeps through the end of a reservation, and through its last
/// second: its timer fires up to a millisecond early, finds nothing to do, and is not set again.
const SCRIPT: &[(usize, &str, usize)] = &[
    // The last second of a reservation: no wait, and it can begin anew.
    (0, "put 1 0 1 1\r\na\r\nreserve\r\nreserve-with-timeout 0\r\nreserve\r\ntouch 1\r\n", 5),
    (0, "stats-job 1\r\ndelete 1\r\n", 2),
    // The end of a delay, after a release and after a put.
    (0, "put 2 0 1000 1\r\nb\r\nreserve\r\nrelease 2 7 1\r\nstats-job 2\r\npeek-ready\r\n", 5),
    (0, "reserve\r\nstats-job 2\r\ndelete 2\r\n", 3),
    (0, "put 3 1 1000 1\r\nc\r\nreserve\r\nstats-job 3\r\ndelete 3\r\n", 4),
    // The end of a pause.
    (0, "pause-tube default 1\r\nput 4 0 1000 1\r\nd\r\nreserve-with-timeout 0\r\n", 3),
    (1, "reserve\r\nstats-tube default\r\ndelete 4\r\n", 3),
    // The end of a wait.
    (1, "reserve-with-timeout 1\r\n", 1),
    // No time at all is a second.
    (0, "put 5 0 0 1\r\ne\r\nstats-job 5\r\nreserve\r\nreserve\r\ndelete 5\r\n", 5),
    // A job that becomes ready is given to its waiter, the others stay.
    (0, "use x\r\nput 6 1 1000 1\r\nf\r\nput 7 1 1000 1\r\ng\r\n", 3),
    (1, "watch x\r\nreserve\r\nreserve\r\nreserve-with-timeout 0\r\nstats-tube x\r\n", 5),
    (0, "stats\r\nlist-tubes\r\n", 2),
];

pub(crate) fn run() {
    for is_on_disk in [false, true] {
        let setup = Setup { is_on_disk, ..Setup::plain() };
        let servers = Servers { ours: Server::ours(&setup), original: Server::original(&setup) };
        let mut ids = Ids::default();
        (0..9).for_each(|_| ids.put());
        let mut clients = [Pair::connect(&servers), Pair::connect(&servers)];
        for (who, text, count) in SCRIPT {
            let client = &mut clients[*who];
            let outcome = client.send_script(&Script::text(*text), &ids).and_then(|()| {
                (0..*count)
                    .try_for_each(|_| Compare { ids: &ids, setup: &setup }.all(&client.reply()?))
            });
            outcome.unwrap_or_else(|why| panic!("client {who}, {text:?}, {setup:?}: {why}"));
        }
    }
}
