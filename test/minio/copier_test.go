package miniotest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/child"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// orderVariable is the variable that makes this program a copier: a process of its
// own, so that its memory and CPU time are those of the copy alone.
const orderVariable = "EKCO_TEST_COPY"

// order is what a copier is to do.
type order struct {
	// Do is the name of one of the tasks.
	Do string
	// From and To are the addresses of servers.
	From, To string
	// Sample is for the task that compares.
	Sample int64
	// Group is a control group to be in, if any, and Answer where to write.
	Group, Answer string
	// Profile is where a profile of the CPU goes, if any.
	Profile string
}

// outcome is what came of it.
type outcome struct {
	Took, CPU time.Duration
	// Peak is the highest resident memory in bytes, that of the process that started
	// this one not included.
	Peak   int64
	Result replica.Result
	Report replica.Report
}

// tasks are what a copier can do.
var tasks = map[string]func(context.Context, order, *outcome) error{
	"pass": func(ctx context.Context, o order, a *outcome) error {
		from, to, err := clients(o)
		if err != nil {
			return err
		}
		if _, err := replica.Prepare(ctx, from, to); err != nil {
			return err
		}
		a.Result, err = replica.Pass(ctx, from, to, replica.Options{})
		return err
	},
	"compare": func(ctx context.Context, o order, a *outcome) error {
		from, to, err := clients(o)
		if err != nil {
			return err
		}
		a.Report, err = replica.Compare(ctx, from, to, replica.CompareOptions{Sample: o.Sample})
		return err
	},
	"serial": func(ctx context.Context, o order, _ *outcome) error { return serial(ctx, o) },
}

func clients(o order) (from, to *s3.Client, err error) {
	keys := s3.Credentials{AccessKey: miniotest.AccessKey, SecretKey: miniotest.SecretKey}
	if from, err = s3.NewClient(s3.Endpoint{Address: o.From, Credentials: keys}, s3.Options{}); err != nil {
		return nil, nil, err
	}
	to, err = s3.NewClient(s3.Endpoint{Address: o.To, Credentials: keys}, s3.Options{})
	return from, to, err
}

// serial copies as EKCO v0.28.14 does: one object after the other, streamed from
// one side to the other with its size, content type and encoding.
func serial(ctx context.Context, o order) error {
	var stores []*minio.Client
	for _, address := range []string{o.From, o.To} {
		client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, "")})
		if err != nil {
			return err
		}
		stores = append(stores, client)
	}
	from, to := stores[0], stores[1]
	buckets, err := from.ListBuckets(ctx)
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		if err := to.MakeBucket(ctx, bucket.Name, minio.MakeBucketOptions{}); err != nil {
			return err
		}
		for object := range from.ListObjects(ctx, bucket.Name, minio.ListObjectsOptions{Recursive: true}) {
			if object.Err != nil {
				return object.Err
			}
			if err := one(ctx, from, to, bucket.Name, object.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

func one(ctx context.Context, from, to *minio.Client, bucket, key string) error {
	content, err := from.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer content.Close()
	stat, err := content.Stat()
	if err != nil {
		return err
	}
	_, err = to.PutObject(ctx, bucket, key, content, stat.Size, minio.PutObjectOptions{
		ContentType: stat.ContentType, ContentEncoding: stat.Metadata.Get("Content-Encoding"),
	})
	return err
}

// memoryTarget is that of the operator.
const memoryTarget = 96 << 20

// obey does what the process was started for.
func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	debug.SetMemoryLimit(memoryTarget)
	if o.Group != "" {
		if err := child.Join(o.Group, os.Getpid()); err != nil {
			return err
		}
	}
	if o.Profile != "" {
		file, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var a outcome
	began := time.Now()
	if err := tasks[o.Do](context.Background(), o, &a); err != nil {
		return fmt.Errorf("%s from %s to %s: %w", o.Do, o.From, o.To, err)
	}
	a.Took = time.Since(began)
	if err := a.account(); err != nil {
		return err
	}
	content, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return os.WriteFile(o.Answer, content, 0o600)
}

// account notes what this process used.
func (a *outcome) account() error {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return err
	}
	a.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	// What getrusage says of memory counts that of the process that started this one.
	memory, err := child.MemoryOf(os.Getpid())
	a.Peak = memory.Peak
	return err
}

// command has a copier do something and returns the outcome.
func command(tb testing.TB, limit time.Duration, o order) outcome {
	tb.Helper()
	o.Answer = filepath.Join(tb.TempDir(), "answer")
	text, err := json.Marshal(o)
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	copier := child.StartWith(tb, []string{orderVariable + "=" + string(text)}, self)
	if code := copier.Wait(limit); code != 0 {
		tb.Fatalf("%s ended with %d: %s", o.Do, code, copier.Output.Tail(2000))
	}
	content, err := os.ReadFile(o.Answer)
	if err != nil {
		tb.Fatal(err)
	}
	var a outcome
	if err := json.Unmarshal(content, &a); err != nil {
		tb.Fatal(err)
	}
	return a
}
