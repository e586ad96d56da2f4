//! Forecasts that were made a moment ago: many viewers look at the same, and one of a thousand
//! steps costs the engine many portions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_core::op::Forecast;
use dormouse_core::topic::TopicName;

use crate::client::BackendClient;
use crate::limits::{FORECAST_KEPT_MS, FORECASTS_KEPT_MAX};
use crate::metrics::Stopwatch;

/// Topic, begin, end and step.
type Key = (TopicName, u64, u64, u64);

/// What was counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) counts: Arc<[u64]>,
    made: Stopwatch,
}

impl Counted {
    /// How long ago.
    pub(crate) fn age(&self) -> Duration {
        self.made.elapsed()
    }

    fn is_fresh(&self) -> bool {
        self.age() < Duration::from_millis(FORECAST_KEPT_MS)
    }
}

/// The forecasts of the last seconds.
#[derive(Default)]
pub(crate) struct Forecasts {
    kept: Mutex<HashMap<Key, Counted>>,
    /// One is made at a time: who waits for its turn mostly finds it made.
    turn: tokio::sync::Mutex<()>,
}

impl Forecasts {
    /// The counts of a forecast that are at most some seconds old.
    pub(crate) async fn get(
        &self,
        client: &BackendClient,
        forecast: Forecast,
    ) -> Result<Counted, Error> {
        let key = (forecast.topic.clone(), forecast.from_ms, forecast.to_ms, forecast.step_ms);
        if let Some(counted) = self.find(&key) {
            return Ok(counted);
        }
        let _turn = self.turn.lock().await;
        if let Some(counted) = self.find(&key) {
            return Ok(counted);
        }
        let counts = client.call(forecast).await?;
        let counted = Counted { counts: counts.into(), made: Stopwatch::start() };
        let mut kept = self.kept();
        kept.retain(|_, counted| counted.is_fresh());
        if kept.len() < FORECASTS_KEPT_MAX {
            kept.insert(key, counted.clone());
        }
        Ok(counted)
    }

    fn find(&self, key: &Key) -> Option<Counted> {
        self.kept().get(key).filter(|counted| counted.is_fresh()).cloned()
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Key, Counted>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use dormouse_core::backend::{Backend, Request, Sink};
    use dormouse_core::command::Command;
    use dormouse_disk::engine::{Engine, Options};
    use tokio::sync::watch;

    use super::*;

    /// An engine, and the number of forecasts that were requested of it.
    struct CountingEngine {
        engine: Engine,
        forecasts: AtomicUsize,
    }

    impl Backend for CountingEngine {
        fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
            let is_forecast = |request: &&Request| matches!(request.command, Command::Forecast(_));
            let forecasts = batch.iter().filter(is_forecast).count();
            self.forecasts.fetch_add(forecasts, Ordering::Relaxed);
            self.engine.submit(batch, sink)
        }
    }

    #[tokio::test]
    async fn viewers_at_the_same_time_share_one_forecast() {
        let engine = Engine::memory(Options::default());
        let backend = Arc::new(CountingEngine { engine, forecasts: AtomicUsize::new(0) });
        let client = BackendClient::new(
            Arc::clone(&backend) as Arc<dyn Backend>,
            Arc::<crate::metrics::Metrics>::default(),
            watch::channel(false).1,
        );
        let forecasts = Forecasts::default();
        let wanted = |from_ms| Forecast {
            topic: TopicName::new("t").unwrap(),
            from_ms,
            to_ms: from_ms + 1_000,
            step_ms: 1,
        };
        let ten = (0..10).map(|_| forecasts.get(&client, wanted(5_000)));
        for counted in futures_of(ten).await {
            assert_eq!(counted.unwrap().counts.len(), 1_000);
        }
        assert_eq!(backend.forecasts.load(Ordering::Relaxed), 1);
        forecasts.get(&client, wanted(6_000)).await.unwrap();
        assert_eq!(backend.forecasts.load(Ordering::Relaxed), 2);
        for from_ms in 0..FORECASTS_KEPT_MAX as u64 + 10 {
            forecasts.get(&client, wanted(from_ms)).await.unwrap();
        }
        assert!(forecasts.kept().len() <= FORECASTS_KEPT_MAX);
    }

    /// Polls all of them by turns.
    async fn futures_of<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
        let mut pending: Vec<_> = futures.map(|future| (Some(Box::pin(future)), None)).collect();
        std::future::poll_fn(|context| {
            for (future, output) in &mut pending {
                if let Some(running) = future
                    && let std::task::Poll::Ready(value) = running.as_mut().poll(context)
                {
                    (*future, *output) = (None, Some(value));
                }
            }
            match pending.iter().all(|(future, _)| future.is_none()) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
        pending.into_iter().filter_map(|(_, output)| output).collect()
    }
}
