package main

import (
	"context"
	"fmt"
	"time"
)

// silence is how long a person is left without a sign of life.
const silence = 2 * time.Second

// answer is what a question led to.
type answer[T any] struct {
	value T
	err   error
}

// patiently asks, and says every 2 s on a terminal, or once elsewhere, that the
// answer is awaited. It returns only when the question has, which must heed ctx.
func patiently[T any](ctx context.Context, p *purger, awaited string, ask func(context.Context) (T, error)) (T, error) {
	answers := make(chan answer[T], 1)
	go func() {
		value, err := ask(ctx)
		answers <- answer[T]{value, err}
	}()
	began := time.Now()
	tick := time.NewTicker(silence)
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

// interrupted returns the error of a question that was broken off by a signal.
func interrupted(ctx context.Context, err error, consequence string) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted; %s", consequence)
	}
	return err
}
