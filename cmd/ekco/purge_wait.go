package main

import (
	"context"
	"fmt"
	"time"
)

// maxSilence is the longest time without output on a terminal.
const maxSilence = 2 * time.Second

// answer is the result of a question.
type answer[T any] struct {
	value T
	err   error
}

// withNotice calls ask, and prints that the command waits: every 2 s on a terminal, otherwise once. It returns only
// after ask has returned, so ask must stop when ctx ends.
func withNotice[T any](ctx context.Context, p *purger, awaited string, ask func(context.Context) (T, error)) (T, error) {
	answers := make(chan answer[T], 1)
	go func() {
		value, err := ask(ctx)
		answers <- answer[T]{value, err}
	}()
	began := time.Now()
	tick := time.NewTicker(maxSilence)
	defer tick.Stop()
	for said := false; ; said = true {
		select {
		case a := <-answers:
			return a.value, a.err
		case <-tick.C:
			if !said || p.app.stderrTerminal {
				p.warn("waiting for %s (%s)", awaited, time.Since(began).Round(time.Second))
			}
		}
	}
}

// interrupted replaces the error of a call that a signal interrupted.
func interrupted(ctx context.Context, err error, consequence string) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted; %s", consequence)
	}
	return err
}
