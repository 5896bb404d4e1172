package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// heldBack returns what a promptOutput writes for others around a question that waits
// while each of the texts is written.
func heldBack(t *testing.T, texts ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := &promptOutput{w: &out}
	if err := p.begin("sure? "); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if n, err := io.WriteString(p, text); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
		}
		if len(p.held.content) > 2*maxHeld {
			t.Fatalf("%d bytes are held", len(p.held.content))
		}
	}
	if err := p.end(nil); err != nil {
		t.Fatal(err)
	}
	shown, asked := strings.CutPrefix(out.String(), "sure? ")
	if !asked {
		t.Fatalf("the question is not first: %.40q", out.String())
	}
	return shown
}

func TestWhatIsWrittenDuringAQuestionIsShownAfterIt(t *testing.T) {
	if got := heldBack(t, "one\n", "two\n"); got != "one\ntwo\n" {
		t.Errorf("shown: %q", got)
	}
	if got := heldBack(t, strings.Repeat("x", maxHeld)); got != strings.Repeat("x", maxHeld) {
		t.Errorf("%d bytes are shown of as many as are kept", len(got))
	}
}

func TestOfALongLogDuringAQuestionTheEndIsShownInWholeLines(t *testing.T) {
	const line = "a line of 30 bytes, no %06d\n"
	var lines []string
	for i := range 100_000 {
		lines = append(lines, fmt.Sprintf(line, i))
	}
	got := heldBack(t, lines...)
	note, rest, _ := strings.Cut(got, "\n")
	left := len(lines)*len(lines[0]) - len(rest)
	if want := fmt.Sprintf("(%d bytes of output were dropped while the question waited)", left); note != want {
		t.Errorf("noted %q, want %q", note, want)
	}
	if len(rest) > maxHeld || len(rest) < maxHeld-len(lines[0]) {
		t.Errorf("%d bytes are shown, want about %d", len(rest), maxHeld)
	}
	if !strings.HasPrefix(rest, "a line of") || !strings.HasSuffix(rest, lines[len(lines)-1]) {
		t.Errorf("shown from %.40q to %q", rest, rest[len(rest)-40:])
	}
	if got := heldBack(t, strings.Repeat("x", 3*maxHeld-1)+"\n"); len(got) > maxHeld+100 || !strings.HasPrefix(got, fmt.Sprintf("(%d bytes", 2*maxHeld)) {
		t.Errorf("of one long line %d bytes are shown: %.40q", len(got), got)
	}
}

func TestAPenWritesAtOnceWhileNothingIsAsked(t *testing.T) {
	var out bytes.Buffer
	p := &promptOutput{w: &out}
	if _, err := p.ask(context.Background(), strings.NewReader("y\n"), "sure? "); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p, "later\n"); err != nil || out.String() != "sure? later\n" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}
