package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ekcoBinary returns the path of the binary to measure, built as it ships.
func ekcoBinary(b *testing.B) string {
	b.Helper()
	if path := os.Getenv("EKCO_BINARY"); path != "" {
		return path
	}
	root := filepath.Join("..", "..")
	run(b, "make", "-s", "-C", root, "build")
	path, err := filepath.Abs(filepath.Join(root, "bin", "ekco"))
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// compared measures the binary, and then, where EKCO_BASELINE names another, that one in
// the same cluster: figures of two runs on a busy machine say little of each other.
func compared(b *testing.B, name string, measure func(b *testing.B)) {
	b.Helper()
	b.Run(name, measure)
	if baseline := os.Getenv("EKCO_BASELINE"); baseline != "" {
		b.Run(name+"/Baseline", func(b *testing.B) {
			b.Setenv("EKCO_BINARY", baseline)
			measure(b)
		})
	}
}

// binariesCompared is how many binaries compared measures.
func binariesCompared() int {
	if os.Getenv("EKCO_BASELINE") != "" {
		return 2
	}
	return 1
}

// controlplaneBinary returns the path of the control plane, building it on
// first use.
func controlplaneBinary(b *testing.B) string {
	b.Helper()
	return strings.TrimSpace(run(b, filepath.Join("..", "controlplane", "build.sh")))
}

// BenchmarkBinarySize reports the size of the stripped binary.
func BenchmarkBinarySize(b *testing.B) {
	for b.Loop() {
		info, err := os.Stat(ekcoBinary(b))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6, "MB")
	}
}
