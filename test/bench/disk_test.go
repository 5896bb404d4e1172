package bench

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkDiskSync reports what the disk under the journals takes to make a
// written page of 4 KiB durable. An append is two of these.
func BenchmarkDiskSync(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "page"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	page := make([]byte, 4096)
	var took []time.Duration
	for b.Loop() {
		for i := range 1000 {
			page[0] = byte(i)
			began := time.Now()
			if _, err := file.WriteAt(page, int64(i%64)*4096); err != nil {
				b.Fatal(err)
			}
			if err := syscall.Fdatasync(int(file.Fd())); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
	}
	spread := spreadOf(took)
	b.ReportMetric(micro(spread.median), "median-us")
	b.ReportMetric(micro(spread.p99), "p99-us")
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func milli(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
