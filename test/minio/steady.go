package miniotest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// answerLimit is how long a client waits for an answer. It is long, so that a busy machine does not fail requests.
const answerLimit = 2 * time.Minute

// writers is the number of connections of a [Steady].
const writers = 4

// Steady is a client that writes, overwrites and deletes objects at a steady rate over permanent connections. It
// records the answers itself.
type Steady struct {
	tb      testing.TB
	bucket  string
	rate    int
	stop    context.CancelFunc
	working sync.WaitGroup
	// idle has functions that close the permanent connections.
	idle []func()

	mu      sync.Mutex
	records map[string]*entry
	did     Did
	last    time.Time
	// deleted is when the last deletion began.
	deleted time.Time
	// isLimited is true if the client may delete only as many objects as allowed says.
	isLimited bool
	allowed   int
}

// entry has what is known about an object. The content "" means that the object does not exist.
type entry struct {
	// acknowledged is the last content that the store confirmed.
	acknowledged string
	// doubtful has other possible contents, from requests without an answer.
	doubtful []string
	// requests has all requests for the object; Audit prints them.
	requests []string
}

// keys is the number of objects that each connection writes.
const keys = 40

// deletedKey is the key of an object that the first writer creates, deletes at once, and never writes again. Other
// objects may be overwritten before the audit.
const deletedKey = "deleted"

func steadyKey(writer, i int) string { return fmt.Sprintf("writer %d/%d", writer, i) }

// SteadyKeys returns the keys of all objects that a [Steady] writes.
func SteadyKeys() []string {
	all := []string{deletedKey}
	for writer := range writers {
		for i := range keys {
			all = append(all, steadyKey(writer, i))
		}
	}
	return all
}

// Did has the results of a [Steady].
type Did struct {
	// Acknowledged and Failed count its requests.
	Acknowledged, Failed int
	// Outage is the longest time without a confirmed request.
	Outage time.Duration
	// Failure is the error of the last failed request.
	Failure string
}

// StartSteady starts a client of the store at the address, as HOST:PORT. It makes rate requests a second in an existing
// bucket. It ends with the test, or when it is stopped.
func StartSteady(tb testing.TB, address, bucket string, rate int) *Steady {
	tb.Helper()
	return StartSteadyAs(tb, address, bucket, rate, AccessKey, SecretKey)
}

// StartSteadyAs is [StartSteady] with credentials.
func StartSteadyAs(tb testing.TB, address, bucket string, rate int, access, secret string) *Steady {
	tb.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	s := &Steady{tb: tb, bucket: bucket, rate: rate, stop: stop, records: map[string]*entry{}, last: time.Now()}
	tb.Cleanup(func() { s.Stop() })
	for id := range writers {
		// A request without an answer is doubtful, and is not repeated.
		client, idle := dial(tb, address, access, secret, answerLimit, 1)
		s.idle = append(s.idle, idle)
		s.working.Go(func() { s.work(ctx, client, id) })
	}
	return s
}

// dial returns a client with a single connection, which waits up to answerTimeout for each answer and tries each request
// up to tries times. It also returns a function that closes the idle connection.
func dial(tb testing.TB, address, access, secret string, answerTimeout time.Duration, tries int) (*minio.Client, func()) {
	tb.Helper()
	transport := &http.Transport{MaxConnsPerHost: 1, ResponseHeaderTimeout: answerTimeout}
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(access, secret, ""), Transport: transport, MaxRetries: tries, Region: "us-east-1",
	})
	if err != nil {
		tb.Fatal(err)
	}
	return client, transport.CloseIdleConnections
}

// work makes one request after the other. No other goroutine uses the same objects.
func (s *Steady) work(ctx context.Context, client *minio.Client, id int) {
	random := rand.New(rand.NewPCG(uint64(id), 1))
	tick := time.NewTicker(time.Second * writers / time.Duration(s.rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		key := steadyKey(id, random.IntN(keys))
		deletes := random.IntN(4) == 0 && s.mayDelete()
		if id == 0 && n < 2 {
			key, deletes = deletedKey, n == 1
		}
		content := ""
		if !deletes {
			content = fmt.Sprintf("%s in request %d %s", key, n, strings.Repeat("x", random.IntN(20000)))
		}
		sent := time.Now()
		// Do not interrupt a request, because its result would then be unknown.
		err := s.request(context.WithoutCancel(ctx), client, key, content)
		s.note(key, content, sent, err)
	}
}

// LimitDeletions allows the client this many further deletions. Before the first call it may delete without limit.
func (s *Steady) LimitDeletions(allowed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isLimited, s.allowed = true, allowed
}

// mayDelete allows one deletion per second. If there were more, EKCO on a busy machine could mistake them for a loss of
// data.
func (s *Steady) mayDelete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.deleted) < time.Second || s.isLimited && s.allowed == 0 {
		return false
	}
	s.allowed--
	s.deleted = time.Now()
	return true
}

func (s *Steady) request(ctx context.Context, client *minio.Client, key, content string) error {
	if content == "" {
		return client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
	}
	_, err := client.PutObject(ctx, s.bucket, key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
	return err
}

// note records a request, and whether it was confirmed.
func (s *Steady) note(key, content string, sent time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.records[key]
	if of == nil {
		of = &entry{}
		s.records[key] = of
	}
	const precise = "15:04:05.000"
	of.requests = append(of.requests, fmt.Sprintf("%s to %s: %s: %v", sent.Format(precise), time.Now().Format(precise), brief(content), err))
	if err != nil {
		s.did.Failed, s.did.Failure = s.did.Failed+1, err.Error()
		of.doubtful = append(of.doubtful, content)
		return
	}
	s.did.Acknowledged++
	s.did.Outage, s.last = max(s.did.Outage, time.Since(s.last)), time.Now()
	of.acknowledged, of.doubtful = content, nil
}

// Did returns the results so far.
func (s *Steady) Did() Did {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.did
}

// Stop stops the client after its requests are answered, and returns the results.
func (s *Steady) Stop() Did {
	s.stop()
	s.working.Wait()
	for _, idle := range s.idle {
		idle()
	}
	return s.Did()
}

// Audit returns the differences between the store at the address and the records of a stopped client, for example a
// confirmed write that is missing or a deleted object that exists. It reads each object and does not use the list,
// because MinIO omits objects from lists, without an error, if drives do not answer for a moment.
func (s *Steady) Audit(address string) (wrong []string) {
	s.tb.Helper()
	const tries = 100 // a server that has just started refuses for up to half a minute
	client, idle := dial(s.tb, address, AccessKey, SecretKey, answerLimit, tries)
	defer idle()
	ctx := context.WithoutCancel(s.tb.Context())
	for object := range client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			s.tb.Fatalf("list bucket %s at %s: %v", s.bucket, address, object.Err)
		}
		if s.records[object.Key] == nil {
			wrong = append(wrong, fmt.Sprintf("object %q exists, but this client did not write it", object.Key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		content, of := s.read(ctx, client, key), s.records[key]
		if content != of.acknowledged && !slices.Contains(of.doubtful, content) {
			wrong = append(wrong, fmt.Sprintf("object %q is %s, and was acknowledged as %s; the requests were\n%s",
				key, brief(content), brief(of.acknowledged), strings.Join(of.requests, "\n")))
		}
	}
	return wrong
}

// read returns the content of an object, or "" if it does not exist.
func (s *Steady) read(ctx context.Context, client *minio.Client, key string) string {
	s.tb.Helper()
	object, err := client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		s.tb.Fatalf("read object %q: %v", key, err)
	}
	defer object.Close()
	content, err := io.ReadAll(object)
	switch {
	case minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return ""
	case err != nil:
		s.tb.Fatalf("read object %q: %v", key, err)
	}
	return string(content)
}

// brief returns a content without its padding.
func brief(content string) string {
	if content == "" {
		return "not there"
	}
	text, filling, _ := strings.Cut(content, " x")
	return fmt.Sprintf("%q and %d bytes", text, len(filling))
}
