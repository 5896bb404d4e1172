package bench

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// BenchmarkHistoryOfAMillionEvents times "ekco history" as a person meets it:
// as a process, with an operator that holds the journal and without one.
func BenchmarkHistoryOfAMillionEvents(b *testing.B) {
	c := startCluster(b, 0, 0)
	o := install(b, c.kubeconfig(b, nil), nil)
	began := time.Now()
	writeStory(b, o.journal, 1_000_000)
	b.Logf("wrote 1,000,000 events in %s", time.Since(began).Round(100*time.Millisecond))
	b.Run("NoOperator", func(b *testing.B) { histories(b, o) })
	b.Run("OperatorStart", func(b *testing.B) {
		for b.Loop() {
			began := time.Now()
			operator := o.start(b)
			o.waitReady(b, operator, 5*time.Minute)
			b.ReportMetric(milli(time.Since(began)), "ready-ms")
			letPass(b, 20*time.Second)
			used := memoryOf(b, operator)
			b.ReportMetric(mebibytes(used.Resident), "rest-MiB")
			b.ReportMetric(mebibytes(used.Anonymous), "rest-anonymous-MiB")
			info, err := os.Stat(o.journal)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "journal-MB")
			operator.Stop(grace)
		}
	})
	operator := o.start(b)
	o.waitReady(b, operator, 5*time.Minute)
	b.Run("Operator", func(b *testing.B) { histories(b, o) })
	b.Logf("operator after the histories: %.1f MiB anonymous", mebibytes(memoryOf(b, operator).Anonymous))
}

// histories times what people ask for.
func histories(b *testing.B, o *installation) {
	node := storyNode(17)
	for _, ask := range []struct {
		name string
		args []string
		// lines is how many lines are read before the pipe is closed; 0 means
		// all. want is the least number of lines there must be.
		lines, want int
	}{
		{"NodeNewest20", []string{"--node", node, "--limit", "20"}, 0, 20},
		{"NodeWhole", []string{"--node", node}, 0, 990},
		{"NodeTree", []string{"--node", node, "-o", "tree"}, 0, 500},
		{"LastDay", nil, 0, 10_000},
		{"JSONHead", []string{"--since", "all", "-o", "json"}, 10, 10},
		{"JSONWhole", []string{"--since", "all", "-o", "json"}, 0, 1_000_000},
	} {
		b.Run(ask.name, func(b *testing.B) {
			var first, whole []time.Duration
			var peak int64
			for b.Loop() {
				asked := o.ask(b, ask.lines, ask.want, ask.args...)
				first, whole = append(first, asked.first), append(whole, asked.whole)
				peak = max(peak, asked.peak)
			}
			b.ReportMetric(milli(spreadOf(first).median), "first-line-ms")
			b.ReportMetric(milli(spreadOf(whole).median), "whole-ms")
			b.ReportMetric(mebibytes(peak), "anonymous-MiB")
		})
	}
}

// asked is how long a command took to its first line and to its end, and the
// most anonymous memory that it or its child was seen to have.
type asked struct {
	first, whole time.Duration
	peak         int64
}

// ask runs "ekco history" and reads its output through a pipe, which it closes
// after that many lines.
func (o *installation) ask(b *testing.B, lines, want int, args ...string) asked {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), o.ekco, append([]string{"history", "--journal", o.journal, "--config", o.config}, args...)...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	complaints, err := os.Create(filepath.Join(b.TempDir(), "stderr"))
	if err != nil {
		b.Fatal(err)
	}
	defer complaints.Close()
	cmd.Stderr = complaints
	var result asked
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	peak, exited := make(chan int64, 1), make(chan struct{})
	go func() { peak <- peakOf(cmd.Process.Pid, exited) }()
	output := bufio.NewReaderSize(pipe, 1<<20)
	count := 0
	for lines == 0 || count < lines {
		_, err := output.ReadSlice('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		if count++; count == 1 {
			result.first = time.Since(began)
		}
	}
	_ = pipe.Close() // as head does
	err = cmd.Wait()
	result.whole = time.Since(began)
	close(exited)
	if err != nil && lines == 0 {
		said, _ := os.ReadFile(complaints.Name())
		b.Fatalf("ekco history %v: %v\n%s", args, err, said)
	}
	if count < want {
		b.Fatalf("ekco history %v: %s lines, want %d", args, strconv.Itoa(count), want)
	}
	result.peak = <-peak
	return result
}
