package miniotest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/child"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// slow is how long one of those that are compared may take.
const slow = 30 * time.Minute

// raced is the bucket that is copied.
const raced = "bucket"

// BenchmarkCopySmall and BenchmarkCopyLarge copy the same objects from one server
// to an empty store of six: one after the other as EKCO v0.28.14 does, with mc, with
// rclone, and with EKCO, with all CPUs and with 200m of one. The figures are seconds,
// and how many times as fast as the others EKCO is. Then both sides are compared.
//
// EKCO_BENCH_SMALL is another number of small objects than 10,000, and
// EKCO_BENCH_LARGE another size of large ones than 1024 MiB.
func BenchmarkCopySmall(b *testing.B) {
	compareCopies(b, wanted(b, "EKCO_BENCH_SMALL", 10_000), 10<<10)
}

func BenchmarkCopyLarge(b *testing.B) {
	compareCopies(b, 4, int64(wanted(b, "EKCO_BENCH_LARGE", 1024))<<20)
}

// BenchmarkCopyMany and BenchmarkCopyHuge copy 100,000 objects of one prefix, and
// one of 5 GiB, from one server to another. They are for the memory that it takes.
func BenchmarkCopyMany(b *testing.B) {
	copyAlone(b, 100_000, func(s side) {
		s.put(b, raced, many+"first", "content", minio.PutObjectOptions{UserMetadata: map[string]string{"Number": "1"}})
		multiply(b, filepath.Join(s.store.Directory(0), raced, many), "first", 100_000)
	})
}

func BenchmarkCopyHuge(b *testing.B) {
	copyAlone(b, 1, func(s side) { fill(b, s, 1, 5<<30) })
}

// many is the prefix of many objects.
const many = "prefix/"

// wanted is a number from the environment.
func wanted(b *testing.B, variable string, byDefault int) int {
	b.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatalf("%s: %v", variable, err)
	}
	return n
}

func compareCopies(b *testing.B, objects int, size int64) {
	r := newRace(b, objects, size)
	for b.Loop() {
		times := make(map[string]time.Duration)
		for _, name := range []string{"serial", "mc", "rclone", "EKCO-200m", "EKCO"} {
			r.clear(b)
			logLoad(b, name)
			times[name] = r.copy(b, name)
			r.check(b, name)
			b.ReportMetric(times[name].Seconds(), name+"-s")
			b.Logf("%s took %s", name, times[name])
		}
		for _, other := range []string{"serial", "mc", "rclone"} {
			b.ReportMetric(times[other].Seconds()/times["EKCO"].Seconds(), other+"/EKCO")
		}
		report(b, r.ours, "EKCO")
		report(b, r.limited, "EKCO-200m")
		compareBoth(b, r.from, r.to)
	}
}

func copyAlone(b *testing.B, objects int, fill func(side)) {
	from := newSide(b, 1)
	from.bucket(b, raced)
	fill(from)
	for b.Loop() {
		to := newSide(b, 1)
		logLoad(b, "EKCO")
		ours := command(b, slow, order{Do: "pass", From: from.store.Address(0), To: to.store.Address(0)})
		if ours.Result.Copied != int64(objects) {
			b.Fatalf("copied %+v of %d objects", ours.Result, objects)
		}
		b.ReportMetric(ours.Took.Seconds(), "EKCO-s")
		report(b, ours, "EKCO")
		compareBoth(b, from, to)
	}
}

// compareBoth measures the comparison of both sides, and that it finds them the same.
func compareBoth(b *testing.B, from, to side) {
	b.Helper()
	for name, sample := range map[string]int64{"verify": 0, "verify-sampled": replica.DefaultSample} {
		got := command(b, slow, order{Do: "compare", From: from.store.Address(0), To: to.store.Address(0), Sample: sample})
		if !got.Report.Same() {
			b.Fatalf("not the same: %+v", got.Report)
		}
		b.ReportMetric(got.Took.Seconds(), name+"-s")
		report(b, got, name)
	}
}

// report tells what a copier used.
func report(b *testing.B, o outcome, name string) {
	b.ReportMetric(float64(o.Peak)/(1<<20), name+"-peak-MiB")
	b.ReportMetric(o.CPU.Seconds(), name+"-CPU-s")
}

// race is what the copies are compared with.
type race struct {
	from, to side
	mc       *miniotest.Client
	objects  int
	// ours is what EKCO's copy came to, limited with little CPU.
	ours, limited outcome
	// group has little CPU.
	group string
}

func newRace(b *testing.B, objects int, size int64) *race {
	b.Helper()
	install := exec.CommandContext(b.Context(), "./rclone.sh")
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		b.Fatalf("install rclone: %v", err)
	}
	r := &race{from: newSide(b, 1), to: newSide(b, 6), objects: objects, group: child.Throttled(b, 200)}
	r.mc = miniotest.NewClient(b, programs, map[string]*miniotest.Store{"from": r.from.store, "to": r.to.store})
	r.from.bucket(b, raced)
	fill(b, r.from, objects, size)
	return r
}

// fill stores objects of random content of a size in ten directories.
func fill(b *testing.B, s side, objects int, size int64) {
	b.Helper()
	numbers := make([]int, objects)
	for i := range numbers {
		numbers[i] = i
	}
	atOnce := 16
	if size > 1<<20 {
		atOnce = 2 // each takes memory for a part
	}
	parallel.Each(atOnce, numbers, func(i int) {
		content := io.LimitReader(rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}), size)
		key := fmt.Sprintf("directory %d/object %06d", i%10, i)
		_, err := s.app.Client.PutObject(b.Context(), raced, key, content, size, minio.PutObjectOptions{
			ContentType: "application/octet-stream", UserMetadata: map[string]string{"Number": fmt.Sprint(i)}, PartSize: 16 << 20,
		})
		if err != nil {
			b.Error(err)
		}
	})
	if b.Failed() {
		b.FailNow()
	}
}

// multiply makes many objects of one, as a server keeps them: what is small is in
// a single file, which does not have the name.
func multiply(b *testing.B, dir, first string, objects int) {
	b.Helper()
	content, err := os.ReadFile(filepath.Join(dir, first, "xl.meta"))
	if err != nil {
		b.Fatal(err)
	}
	if !bytes.Contains(content, []byte("content")) {
		b.Fatal("the content is in a file of its own")
	}
	for i := range objects - 1 {
		one := filepath.Join(dir, fmt.Sprintf("object %06d", i))
		if err := os.Mkdir(one, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(one, "xl.meta"), content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// clear empties the target.
func (r *race) clear(b *testing.B) {
	b.Helper()
	there, err := r.to.app.BucketExists(b.Context(), raced)
	if err != nil {
		b.Fatal(err)
	}
	if there {
		r.mc.Run("rb", "--force", "to/"+raced)
	}
}

// copy has one of them copy.
func (r *race) copy(b *testing.B, name string) time.Duration {
	b.Helper()
	ordered := order{Do: "pass", From: r.from.store.Address(0), To: r.to.store.Address(0)}
	began := time.Now()
	switch name {
	case "serial":
		ordered.Do = "serial"
		return command(b, slow, ordered).Took
	case "mc":
		r.mc.Run("mb", "to/"+raced)
		r.mc.Run("mirror", "--preserve", "from/"+raced, "to/"+raced)
	case "rclone":
		r.rclone(b)
	case "EKCO-200m":
		ordered.Group = r.group
		r.limited = command(b, slow, ordered)
		return r.limited.Took
	case "EKCO":
		r.ours = command(b, slow, ordered)
		return r.ours.Took
	default:
		b.Fatalf("nobody is called %s", name)
	}
	return time.Since(began)
}

// rclone copies with more at the same time than is rclone's default, which is 4.
func (r *race) rclone(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), slow)
	defer cancel()
	command := exec.CommandContext(ctx, "rclone", "copy", "--config", "", "--metadata", "--transfers", "32", "--checkers", "32", "from:"+raced, "to:"+raced)
	// Not this environment: it can name certificates, which Debian's rclone refuses.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir()}
	for name, store := range map[string]*miniotest.Store{"FROM": r.from.store, "TO": r.to.store} {
		for _, setting := range []string{
			"TYPE=s3", "PROVIDER=Minio", "ACCESS_KEY_ID=" + miniotest.AccessKey, "SECRET_ACCESS_KEY=" + miniotest.SecretKey, "ENDPOINT=" + store.URL(),
		} {
			command.Env = append(command.Env, "RCLONE_CONFIG_"+name+"_"+setting)
		}
	}
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", command, err, output)
	}
}

// check fails unless all objects were copied.
func (r *race) check(b *testing.B, name string) {
	b.Helper()
	count := 0
	for object := range r.to.app.ListObjectsIter(b.Context(), raced, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			b.Fatal(object.Err)
		}
		count++
	}
	if count != r.objects {
		b.Fatalf("%s copied %d of %d objects", name, count, r.objects)
	}
}

func logLoad(b *testing.B, name string) {
	b.Helper()
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("load averages before %s: %s", name, content)
}
