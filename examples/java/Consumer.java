import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A robust consumer of Dormouse over HTTP, to copy: Java 17 and nothing else.
 *
 * <pre>DORMOUSE_URL=http://127.0.0.1:7788 java Consumer.java orders</pre>
 *
 * It polls for as many jobs as it has free slots, extends leases at a third of their ttr, tells how jobs
 * ended until it is heard, waits for a server that is away, and finishes its jobs on SIGTERM.
 */
public class Consumer {
    static final int CONCURRENCY = 8;
    static final long WAIT_MS = 30_000; // of one poll; at most 60 s
    static final long JOB_TIMEOUT_MS = 300_000;
    static final long GRACE_MS = 30_000; // for jobs in hand after SIGTERM
    static final long TELL_FOR_MS = 600_000; // how long an ack is repeated while nobody hears it

    /**
     * The work. Returning acks the job, Kill makes it dead, Retry says when to try again, any other exception
     * nacks it. The thread is interrupted when the lease is lost, the job took too long, or the grace is
     * over.
     */
    static void handle(Map<String, Object> job) throws Exception {
        if (!(body(job) instanceof Map<?, ?> order)) throw new Kill("the body is no JSON object");
        if (!(order.get("order") instanceof Number number) || number.intValue() <= 0) throw new Kill("an order has a number");
        if (number.intValue() == 13 && longOf(job, "attempt") == 1) throw new Retry(100, "not at the first attempt");
        if (order.get("work_ms") instanceof Number ms) Thread.sleep(ms.longValue());
    }

    /** A JSON body as it is; text is read as JSON. Bytes would come in the field `base64`. */
    static Object body(Map<String, Object> job) throws Kill {
        if (job.containsKey("body")) return job.get("body");
        try {
            return new Json(String.valueOf(job.get("text"))).read();
        } catch (IOException e) {
            throw new Kill("the body is not JSON: " + e.getMessage());
        }
    }

    @SuppressWarnings("serial")
    static class Kill extends Exception {
        Kill(String reason) { super(reason); }
    }

    @SuppressWarnings("serial")
    static class Retry extends Exception {
        final long afterMs;

        Retry(long afterMs, String reason) {
            super(reason);
            this.afterMs = afterMs;
        }
    }

    /** An answer that says no. */
    @SuppressWarnings("serial")
    static class Problem extends Exception {
        final boolean retryable;

        Problem(String text, boolean retryable) {
            super(text);
            this.retryable = retryable;
        }
    }

    static final String URL = System.getenv().getOrDefault("DORMOUSE_URL", "http://127.0.0.1:7788").replaceAll("/+$", "");
    static final String TOKEN = System.getenv("DORMOUSE_TOKEN");
    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5)).build();
    static final ScheduledExecutorService TIMER = Executors.newScheduledThreadPool(2, Consumer::daemon);
    static final ExecutorService POOL = Executors.newFixedThreadPool(CONCURRENCY, Consumer::daemon);
    static final Semaphore SLOTS = new Semaphore(CONCURRENCY);
    static final AtomicReference<CompletableFuture<?>> POLL = new AtomicReference<>();
    static volatile boolean stopping = false;

    public static void main(String[] topics) throws Exception {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> drain(main)));
        for (int tries = 0; !stopping; ) {
            SLOTS.acquire();
            int free = 1 + SLOTS.drainPermits();
            List<Map<String, Object>> jobs = List.of();
            try {
                jobs = reserve(topics, free);
                tries = 0;
            } catch (Problem problem) {
                // A bad token or topic: trying again would not help.
                if (!problem.retryable) throw problem;
                pause("reserve", problem, tries++);
            } catch (Exception e) {
                if (!stopping) pause("reserve", e, tries++);
            }
            SLOTS.release(free - jobs.size());
            for (Map<String, Object> job : jobs) POOL.submit(() -> work(job));
        }
    }

    /** SIGTERM: ends the poll at once, waits for jobs in hand, then interrupts them. */
    static void drain(Thread main) {
        stopping = true;
        CompletableFuture<?> poll = POLL.get();
        if (poll != null) poll.cancel(true);
        System.err.println("stopping: jobs in hand are finished");
        try {
            main.join(2_000); // a poll that was answered just now still starts its jobs
            if (SLOTS.tryAcquire(CONCURRENCY, GRACE_MS, TimeUnit.MILLISECONDS)) return;
            POOL.shutdownNow();
            SLOTS.tryAcquire(CONCURRENCY, 3, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @SuppressWarnings("unchecked")
    static List<Map<String, Object>> reserve(String[] topics, int max) throws Exception {
        Map<String, Object> request = Map.of("topics", List.of(topics), "max", max, "wait", WAIT_MS);
        CompletableFuture<Map<String, Object>> poll = send("/v1/reserve", request, WAIT_MS + 10_000);
        POLL.set(poll);
        if (stopping) poll.cancel(true);
        return (List<Map<String, Object>>) answer(poll).get("jobs");
    }

    /** Runs one job and tells how it ended. */
    static void work(Map<String, Object> job) {
        try {
            System.out.println("start " + job.get("id") + " " + longOf(job, "attempt"));
            Thread handler = Thread.currentThread();
            Future<?> renewal = keep(job, handler);
            String verb = "ack";
            Map<String, Object> fields = new HashMap<>();
            try {
                handle(job);
            } catch (InterruptedException e) {
                verb = POOL.isShutdown() ? "release" : "nack";
                if (verb.equals("nack")) fields.put("error", "interrupted: the lease was lost, or it took too long");
            } catch (Kill e) {
                verb = "kill";
                fields.put("error", e.getMessage());
            } catch (Retry e) {
                verb = "nack";
                fields.putAll(Map.of("error", e.getMessage(), "delay", e.afterMs));
            } catch (Exception e) {
                verb = "nack";
                fields.put("error", e.toString());
            }
            synchronized (job) { // the renewal must not interrupt what comes now
                renewal.cancel(false);
                Thread.interrupted();
            }
            tell(verb, job, fields);
        } finally {
            SLOTS.release();
        }
    }

    /** Extends a lease at a third of its ttr; interrupts the handler if it is lost. */
    static Future<?> keep(Map<String, Object> job, Thread handler) {
        long ttrMs = longOf(job, "ttr_ms");
        long startedAt = System.nanoTime();
        long[] goodAt = {startedAt};
        AtomicReference<Future<?>> renewal = new AtomicReference<>();
        Runnable extend = () -> {
            long askedAt = System.nanoTime();
            boolean isLost = false;
            try {
                answer(send("/v1/extend", Map.of("token", job.get("token"), "ttr", ttrMs), ttrMs / 3 + 1_000));
                goodAt[0] = askedAt;
            } catch (Problem problem) {
                isLost = !problem.retryable;
            } catch (Exception e) {
                System.err.println("extend of job " + job.get("id") + ": " + e);
            }
            boolean isOver = System.nanoTime() - startedAt > JOB_TIMEOUT_MS * 1_000_000;
            if (!isLost && !isOver && System.nanoTime() - goodAt[0] < ttrMs * 1_000_000) return;
            synchronized (job) {
                Future<?> own = renewal.get();
                if (own == null || own.isCancelled()) return;
                own.cancel(false);
                handler.interrupt();
            }
        };
        renewal.set(TIMER.scheduleWithFixedDelay(extend, ttrMs / 3, Math.max(1, ttrMs / 4), TimeUnit.MILLISECONDS));
        return renewal.get();
    }

    /** Says how a job ended until somebody hears it. A lost lease is an answer, too. */
    static void tell(String verb, Map<String, Object> job, Map<String, Object> fields) {
        fields.put("token", job.get("token"));
        long giveUpAt = System.nanoTime() + TELL_FOR_MS * 1_000_000;
        for (int tries = 0; System.nanoTime() < giveUpAt; tries++) {
            try {
                System.out.println(verb + " " + job.get("id") + " " + answer(send("/v1/" + verb, fields, 10_000)).get("code"));
                return;
            } catch (Problem problem) {
                if (!problem.retryable) {
                    System.out.println("lost " + job.get("id") + " " + problem.getMessage());
                    return;
                }
                pause(verb + " of job " + job.get("id"), problem, tries);
            } catch (Exception e) {
                pause(verb + " of job " + job.get("id"), e, tries);
            }
        }
        System.err.println(verb + " of job " + job.get("id") + " was never heard; it comes again");
    }

    /** Waits 50 ms, doubling to 2 s; half of it is chance, so that consumers do not come all at once. */
    static void pause(String what, Exception why, int tries) {
        long fullMs = Math.min(2_000, 50L << Math.min(tries, 6));
        System.err.println(what + ": " + why + "; again");
        try {
            Thread.sleep(fullMs / 2 + ThreadLocalRandom.current().nextLong(fullMs / 2));
        } catch (InterruptedException e) {
            Thread.interrupted(); // telling goes on: the process ends it
        }
    }

    static CompletableFuture<Map<String, Object>> send(String path, Object body, long timeoutMs) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(URL + path)).timeout(Duration.ofMillis(timeoutMs))
            .header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
        if (TOKEN != null) request.header("Authorization", "Bearer " + TOKEN);
        CompletableFuture<HttpResponse<String>> sent = HTTP.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        CompletableFuture<Map<String, Object>> read = sent.thenCompose(Consumer::read);
        // Cancelling the result closes the connection, and a poll that is closed takes no job with it.
        read.whenComplete((result, error) -> { if (read.isCancelled()) sent.cancel(true); });
        return read;
    }

    @SuppressWarnings("unchecked")
    static CompletableFuture<Map<String, Object>> read(HttpResponse<String> response) {
        int status = response.statusCode();
        try {
            Map<String, Object> value = (Map<String, Object>) new Json(response.body()).read();
            if (status < 300) return CompletableFuture.completedFuture(value);
            return CompletableFuture.failedFuture(new Problem(value.get("code") + ": " + value.get("detail"), Boolean.TRUE.equals(value.get("retryable"))));
        } catch (IOException | ClassCastException e) {
            return CompletableFuture.failedFuture(new Problem(status + ": no answer of Dormouse; is DORMOUSE_URL right?", status >= 502 && status <= 504));
        }
    }

    static Map<String, Object> answer(CompletableFuture<Map<String, Object>> sent) throws Exception {
        try {
            return sent.get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    static long longOf(Map<String, Object> job, String field) {
        return ((Number) job.get(field)).longValue();
    }

    static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }

    /** JSON as maps, lists, strings, longs, doubles, booleans and null. With Jackson or Gson leave it out. */
    static class Json {
        private final String text;
        private int at = 0;

        Json(String text) { this.text = text; }

        Object read() throws IOException {
            Object value = value(0);
            if (peek() != 0) throw bad();
            return value;
        }

        private Object value(int depth) throws IOException {
            if (depth > 100) throw bad();
            switch (peek()) {
                case '{': return object(depth);
                case '[': return array(depth);
                case '"': return string();
                default: return literal();
            }
        }

        private Map<String, Object> object(int depth) throws IOException {
            Map<String, Object> map = new HashMap<>();
            at++;
            if (take('}')) return map;
            do {
                if (peek() != '"') throw bad();
                String name = string();
                if (!take(':')) throw bad();
                map.put(name, value(depth + 1));
            } while (take(','));
            if (!take('}')) throw bad();
            return map;
        }

        private List<Object> array(int depth) throws IOException {
            List<Object> list = new ArrayList<>();
            at++;
            if (take(']')) return list;
            do list.add(value(depth + 1)); while (take(','));
            if (!take(']')) throw bad();
            return list;
        }

        private String string() throws IOException {
            StringBuilder made = new StringBuilder();
            for (at++; at < text.length(); at++) {
                char c = text.charAt(at);
                if (c == '"') {
                    at++;
                    return made.toString();
                }
                if (c < ' ') throw bad();
                made.append(c == '\\' ? escaped() : c);
            }
            throw bad();
        }

        private char escaped() throws IOException {
            if (++at >= text.length()) throw bad();
            char c = text.charAt(at);
            int known = "\"\\/bfnrt".indexOf(c);
            if (known >= 0) return "\"\\/\b\f\n\r\t".charAt(known);
            if (c != 'u' || at + 4 >= text.length()) throw bad();
            int code = 0;
            for (int digit = 1; digit <= 4; digit++) {
                int value = Character.digit(text.charAt(at + digit), 16);
                if (value < 0) throw bad();
                code = code * 16 + value;
            }
            at += 4;
            return (char) code;
        }

        private Object literal() throws IOException {
            int from = at;
            while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
            String word = text.substring(from, at);
            switch (word) {
                case "true": return true;
                case "false": return false;
                case "null": return null;
                default:
            }
            try {
                if (word.isEmpty() || word.charAt(0) == '+' || !word.chars().allMatch(c -> "+-.eE0123456789".indexOf(c) >= 0)) throw bad();
                boolean isWhole = word.length() <= 18 && word.chars().noneMatch(c -> ".eE".indexOf(c) >= 0);
                return isWhole ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
            } catch (NumberFormatException e) {
                throw bad();
            }
        }

        private char peek() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
            return at < text.length() ? text.charAt(at) : 0;
        }

        private boolean take(char c) {
            if (peek() != c) return false;
            at++;
            return true;
        }

        private IOException bad() {
            return new IOException("no JSON at character " + at);
        }

        static String write(Object value) {
            if (value instanceof Map<?, ?> map) {
                List<String> fields = new ArrayList<>();
                map.forEach((name, field) -> fields.add(write(name) + ":" + write(field)));
                return "{" + String.join(",", fields) + "}";
            }
            if (value instanceof List<?> list) return "[" + String.join(",", list.stream().map(Json::write).toList()) + "]";
            if (!(value instanceof String text)) return String.valueOf(value);
            StringBuilder made = new StringBuilder("\"");
            for (char c : text.toCharArray()) {
                if (c == '"' || c == '\\') made.append('\\').append(c);
                else if (c < ' ' || Character.isSurrogate(c)) made.append(String.format("\\u%04x", (int) c));
                else made.append(c);
            }
            return made.append('"').toString();
        }
    }
}
