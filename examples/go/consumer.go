// A robust consumer of Dormouse over HTTP, to copy: net/http and nothing else.
//
//	DORMOUSE_URL=http://127.0.0.1:7788 go run consumer.go orders
//
// It polls for as many jobs as it has free slots, extends leases at a third of their ttr, tells how
// jobs ended until it is heard, waits for a server that is away, and finishes its jobs on SIGTERM.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	concurrency = 8
	wait        = 30 * time.Second // of one poll; at most 60 s
	jobTimeout  = 5 * time.Minute
	grace       = 30 * time.Second // for jobs in hand after SIGTERM
	tellFor     = 10 * time.Minute // how long an ack is repeated while nobody hears it
)

// handle does the work. nil acks the job, Kill makes it dead, Retry says when to try again, any
// other error nacks it. ctx ends when the lease is lost, the job took too long, or the grace is over.
func handle(ctx context.Context, job Job) error {
	var order struct {
		Order  int `json:"order"`
		WorkMs int `json:"work_ms"`
	}
	if err := json.Unmarshal(job.Content(), &order); err != nil {
		return Kill{"the body is not JSON: " + err.Error()}
	}
	if order.Order <= 0 {
		return Kill{"an order has a number"}
	}
	if order.Order == 13 && job.Attempt == 1 {
		return Retry{100 * time.Millisecond, "not at the first attempt"}
	}
	select {
	case <-time.After(time.Duration(order.WorkMs) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type Kill struct{ Reason string }

func (k Kill) Error() string { return k.Reason }

type Retry struct {
	After  time.Duration
	Reason string
}

func (r Retry) Error() string { return r.Reason }

// Job is a reserved job. A JSON body comes in Body, text in Text, other bytes in Bytes.
type Job struct {
	Topic   string            `json:"topic"`
	ID      string            `json:"id"`
	Key     string            `json:"key"`
	Token   string            `json:"token"`
	Attempt int               `json:"attempt"`
	TTRMs   int64             `json:"ttr_ms"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Text    string            `json:"text"`
	Bytes   []byte            `json:"base64"`
}

func (j Job) Content() []byte {
	switch {
	case j.Body != nil:
		return j.Body
	case j.Text != "":
		return []byte(j.Text)
	}
	return j.Bytes
}

// Problem is an answer that says no.
type Problem struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// refused says whether err is an answer that no repetition will change.
func refused(err error) (*Problem, bool) {
	var problem *Problem
	ok := errors.As(err, &problem) && !problem.Retryable
	return problem, ok
}

type fields = map[string]any

// server is one set of connections. A poll occupies its own, so it has a set of its own.
type server struct {
	url, token string
	client     *http.Client
}

func (s server) post(ctx context.Context, path string, in any, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, "POST", s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode < 300 {
		return json.Unmarshal(text, out)
	}
	problem := &Problem{Code: response.Status, Retryable: response.StatusCode >= 502 && response.StatusCode <= 504}
	if json.Unmarshal(text, problem) != nil {
		problem.Detail = "no answer of Dormouse; is the URL right?"
	}
	return problem
}

// backoff doubles from 50 ms to 2 s; half of it is chance, so that consumers do not come all at once.
func backoff(tries int) time.Duration {
	full := 2 * time.Second
	if tries < 6 {
		full = 50 * time.Millisecond << tries
	}
	return full/2 + time.Duration(rand.Int63n(int64(full/2)))
}

// tell says how a job ended until somebody hears it. A lost lease is an answer, too.
func (s server) tell(verb string, job Job, more fields) {
	more["token"] = job.Token
	for tries, start := 0, time.Now(); time.Since(start) < tellFor; tries++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		var result struct{ Code string }
		err := s.post(ctx, "/v1/"+verb, more, &result)
		cancel()
		if err == nil {
			fmt.Println(verb, job.ID, result.Code)
			return
		}
		if problem, ok := refused(err); ok {
			fmt.Println("lost", job.ID, problem)
			return
		}
		log.Printf("%s of job %s: %v; told again", verb, job.ID, err)
		time.Sleep(backoff(tries))
	}
	log.Printf("%s of job %s was never heard; it comes again", verb, job.ID)
}

// keep extends a lease until ctx ends, and calls lost if somebody else has the job or it is gone.
func (s server) keep(ctx context.Context, job Job, lost func()) {
	ttr := time.Duration(job.TTRMs) * time.Millisecond
	next, good := ttr/3, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		asked := time.Now()
		request, cancel := context.WithTimeout(ctx, ttr/3+time.Second)
		var result struct{ Code string }
		err := s.post(request, "/v1/extend", fields{"token": job.Token, "ttr": job.TTRMs}, &result)
		cancel()
		_, isRefused := refused(err)
		switch {
		case err == nil:
			next, good = ttr/3, asked
		case isRefused || time.Since(good) > ttr:
			lost()
			return
		default:
			log.Printf("extend of job %s: %v", job.ID, err)
			next = ttr / 12
		}
	}
}

// work runs one job and tells how it ended.
func (s server) work(stop context.Context, job Job) {
	fmt.Println("start", job.ID, job.Attempt)
	ctx, cancel := context.WithTimeout(stop, jobTimeout)
	defer cancel()
	renewing, done := context.WithCancel(context.Background())
	go s.keep(renewing, job, cancel)
	err := handle(ctx, job)
	done()
	var kill Kill
	var retry Retry
	switch {
	case err == nil:
		s.tell("ack", job, fields{})
	case stop.Err() != nil:
		s.tell("release", job, fields{})
	case errors.As(err, &kill):
		s.tell("kill", job, fields{"error": kill.Reason})
	case errors.As(err, &retry):
		s.tell("nack", job, fields{"error": retry.Reason, "delay": retry.After.Milliseconds()})
	default:
		s.tell("nack", job, fields{"error": err.Error()})
	}
}

func main() {
	url := strings.TrimRight(os.Getenv("DORMOUSE_URL"), "/")
	if url == "" {
		url = "http://127.0.0.1:7788"
	}
	token := os.Getenv("DORMOUSE_TOKEN")
	polls := server{url, token, &http.Client{Transport: &http.Transport{}}}
	tells := server{url, token, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}}
	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	over, endGrace := context.WithCancel(context.Background())
	slots := make(chan struct{}, concurrency)
	var running sync.WaitGroup
	for tries := 0; stop.Err() == nil; {
		select {
		case slots <- struct{}{}: // at least one slot is free
			<-slots
		case <-stop.Done():
			continue
		}
		free := concurrency - len(slots)
		ctx, cancel := context.WithTimeout(stop, wait+10*time.Second)
		var answer struct{ Jobs []Job }
		reserve := fields{"topics": os.Args[1:], "max": free, "wait": wait.Milliseconds()}
		err := polls.post(ctx, "/v1/reserve", reserve, &answer)
		cancel()
		if problem, ok := refused(err); ok {
			log.Fatal(problem) // a bad token or topic: trying again would not help
		}
		if err != nil && stop.Err() == nil {
			log.Printf("reserve: %v; again", err)
			time.Sleep(backoff(tries))
			tries++
			continue
		}
		tries = 0
		for _, job := range answer.Jobs {
			slots <- struct{}{}
			running.Add(1)
			go func(job Job) {
				defer func() { <-slots; running.Done() }()
				tells.work(over, job)
			}(job)
		}
	}
	log.Print("stopping: jobs in hand are finished")
	time.AfterFunc(grace, endGrace)
	running.Wait()
}
