import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/**
 * The order that is not paid in time: a timeout is put with the order and cancelled by the payment.
 *
 * <pre>
 * java Orders.java placed 42 30m
 * java Orders.java paid 42
 * </pre>
 */
public class Orders {
    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** Repeats a request while the server is away; each of these two may be repeated safely. */
    static HttpResponse<String> send(String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("DORMOUSE_URL") + path))
            .timeout(Duration.ofSeconds(10)).header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        for (int tries = 1; ; tries++) {
            try {
                HttpResponse<String> response = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() < 500 || tries == 5) return response;
            } catch (IOException e) {
                if (tries == 5) throw e;
            }
            Thread.sleep(tries * 200L);
        }
    }

    /** Puts the timeout. The key makes a repetition harmless: the job that is there is kept. */
    static void placed(long order, String delay) throws Exception {
        String job = String.format("{\"body\": {\"order\": %d}, \"key\": \"order-%d\", \"delay\": \"%s\"}", order, order, delay);
        HttpResponse<String> response = send("POST", "/v1/topics/timeouts/jobs", job);
        System.out.println("placed " + response.statusCode() + " " + response.body());
        if (response.statusCode() >= 300) throw new IOException(response.body());
    }

    /**
     * Cancels the timeout. Call it after the database has changed the order from open to paid: that decides,
     * because the timeout changes it from open to closed in the same way.
     */
    static void paid(long order) throws Exception {
        HttpResponse<String> response = send("DELETE", "/v1/topics/timeouts/keys/order-" + order + "?unless_leased=true", "");
        System.out.println(switch (response.statusCode()) {
            case 200 -> "cancelled"; // "was" is delayed or ready: no worker had it
            case 409 -> "in hand"; // a worker has it: it finds the order paid and does nothing
            case 404 -> "not there"; // it is done, or a repeated cancel finds its own work
            default -> throw new IOException(response.body());
        });
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 3 && args[0].equals("placed")) placed(Long.parseLong(args[1]), args[2]);
        else if (args.length == 2 && args[0].equals("paid")) paid(Long.parseLong(args[1]));
        else throw new IllegalArgumentException("write `placed ORDER DELAY` or `paid ORDER`");
    }
}
