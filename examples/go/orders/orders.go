// The order that is not paid in time: a timeout is put with the order and cancelled by the payment.
//
//	go run orders.go placed 42 30m
//	go run orders.go paid 42
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

var client = &http.Client{Timeout: 10 * time.Second}

// send repeats a request while the server is away; each of these two may be repeated safely.
func send(method, path string, body any) (int, string, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	url := strings.TrimRight(os.Getenv("DORMOUSE_URL"), "/") + path
	for tries := 1; ; tries++ {
		request, err := http.NewRequest(method, url, bytes.NewReader(text))
		if err != nil {
			return 0, "", err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err == nil {
			answer, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && (response.StatusCode < 500 || tries == 5) {
				return response.StatusCode, string(answer), nil
			}
		} else if tries == 5 {
			return 0, "", err
		}
		time.Sleep(time.Duration(tries) * 200 * time.Millisecond)
	}
}

// placed puts the timeout. The key makes a repetition harmless: the job that is there is kept.
func placed(order, delay string) error {
	job := map[string]any{"body": map[string]string{"order": order}, "key": "order-" + order, "delay": delay}
	status, answer, err := send("POST", "/v1/topics/timeouts/jobs", job)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%d: %s", status, answer)
	}
	fmt.Println("placed", status, answer)
	return err
}

// paid cancels the timeout. Call it after the database has changed the order from open to paid: that
// decides, because the timeout changes it from open to closed in the same way.
func paid(order string) error {
	status, answer, err := send("DELETE", "/v1/topics/timeouts/keys/order-"+order+"?unless_leased=true", nil)
	switch {
	case err != nil:
		return err
	case status == 200: // "was" is delayed or ready: no worker had it
		fmt.Println("cancelled")
	case status == 409: // a worker has it: it finds the order paid and does nothing
		fmt.Println("in hand")
	case status == 404: // it is done, or a repeated cancel finds its own work
		fmt.Println("not there")
	default:
		return fmt.Errorf("%d: %s", status, answer)
	}
	return nil
}

func main() {
	var err error
	if len(os.Args) == 4 && os.Args[1] == "placed" {
		err = placed(os.Args[2], os.Args[3])
	} else if len(os.Args) == 3 && os.Args[1] == "paid" {
		err = paid(os.Args[2])
	} else {
		err = fmt.Errorf("write `placed ORDER DELAY` or `paid ORDER`")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
