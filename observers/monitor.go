package observers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

const (
	// lostAfter is how long the API must fail before the failure counts as an outage.
	lostAfter = 5 * time.Second
	// EKCO sends probes only while something fails, so that even a long outage causes only one small request at a time.
	// The first probe is sent at once, and the next after probeFirst. The interval then grows: up to probeLost during
	// an outage, and up to probeAnswered if the API server answers although something fails.
	probeFirst    = time.Second
	probeLost     = 5 * time.Second
	probeAnswered = 30 * time.Second
	probeTimeout  = 3 * time.Second
)

// outageMonitor decides whether the API server answers. Readers and callers of the API report failures to it. It then
// probes the API server until everything works again or there is an outage.
//
// An outage begins if an essential source could not be read for lostAfter. It also begins if something else failed and
// the API server did not answer a probe for lostAfter. It ends when the API server answers and every reader has read
// everything again.
type outageMonitor struct {
	probe   func(context.Context) error
	outages *outages
	log     *slog.Logger
	wake    chan struct{}
	// asked is the time of the last probe. Only run uses it.
	asked time.Time

	mu      sync.Mutex
	readers map[reader]*health
	// suspected is a failure outside the readers, or the zero value.
	suspected health
	lost      bool
	// lostAt is when the last outage was declared.
	lostAt time.Time
	// answered is the result of the last probe. outdated is true if a reader has had another result since.
	answered, outdated bool
}

// reader is a feed or poll that reads from the API server repeatedly.
type reader interface {
	// isEssential reports whether EKCO cannot work without the reader.
	isEssential() bool
	// endPause ends the reader's pause; restart makes it read everything again.
	endPause()
	restart()
}

// health is the state of a reader. The zero value is a working reader.
type health struct {
	failingSince time.Time
	err          error
	// stale is true if the reader has not read everything since the outage began.
	stale bool
}

func (h health) failing() bool { return !h.failingSince.IsZero() }

func newOutageMonitor(probe func(context.Context) error, out *outages, log *slog.Logger) *outageMonitor {
	return &outageMonitor{probe: probe, outages: out, log: log, wake: make(chan struct{}, 1), readers: make(map[reader]*health)}
}

func (m *outageMonitor) join(r reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers[r] = &health{}
}

func (m *outageMonitor) leave(r reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.readers, r)
	m.wakeUp()
}

// recordNoAnswer records that a reader received no answer.
func (m *outageMonitor) recordNoAnswer(r reader, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.readers[r]
	if h == nil {
		return
	}
	h.err = err
	if m.lost && m.answered && !r.isEssential() {
		h.stale = false // it has retried, so the others need not wait for it
	}
	if !h.failing() {
		h.failingSince = time.Now()
		m.outdated = m.outdated || m.answered
	}
	m.wakeUp()
}

// recordRead records that a reader has read everything, or that the API server refused this, which is an answer, too. A
// read that began before the outage does not end the outage.
func (m *outageMonitor) recordRead(r reader, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.readers[r]; h != nil && (h.failing() || h.stale) {
		*h = health{stale: h.stale && began.Before(m.lostAt)}
		m.outdated = m.outdated || !m.answered
		m.wakeUp()
	}
}

func (m *outageMonitor) suspectOutage(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.suspected.failing() {
		m.suspected = health{failingSince: time.Now(), err: err}
		m.wakeUp()
	}
}

func (m *outageMonitor) outage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

func (m *outageMonitor) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run waits for failures and investigates them, until ctx ends.
func (m *outageMonitor) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
		if m.hasFailure() {
			m.probeUntilHealthy(ctx)
		}
	}
}

// hasFailure reports whether anything fails.
func (m *outageMonitor) hasFailure() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost || m.suspected.failing() {
		return true
	}
	for _, h := range m.readers {
		if h.failing() {
			return true
		}
	}
	return false
}

// probeUntilHealthy probes the API server until nothing fails.
func (m *outageMonitor) probeUntilHealthy(ctx context.Context) {
	m.mu.Lock()
	m.answered = false
	m.mu.Unlock()
	pace := probeFirst
	timer := time.NewTimer(m.probeDelay())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
			if m.isOutdated() {
				timer.Reset(m.probeDelay())
			}
		case <-timer.C:
			m.sendProbe(ctx)
			pace = m.nextPace(pace)
			timer.Reset(pace)
		}
		m.updateOutage()
		if !m.hasFailure() {
			return
		}
	}
}

// probeDelay returns how long the next probe must wait.
func (m *outageMonitor) probeDelay() time.Duration {
	if m.asked.IsZero() {
		return 0
	}
	return max(0, probeFirst-time.Since(m.asked))
}

// isOutdated reports whether the last result may be outdated.
func (m *outageMonitor) isOutdated() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outdated || m.answered && m.suspected.failing()
}

// nextPace returns the interval after another probe.
func (m *outageMonitor) nextPace(pace time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.oldestFailure()
	switch {
	case !m.lost && err != nil: // an outage may begin
		return probeFirst
	case m.answered:
		return min(2*pace, probeAnswered)
	}
	return min(2*pace, probeLost)
}

// sendProbe sends one probe. When the API server answers again, it makes every waiting reader retry at once.
func (m *outageMonitor) sendProbe(ctx context.Context) {
	m.asked = time.Now()
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := m.probe(kube.Unreported(probing))
	if ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	back := err == nil && !m.answered
	m.answered, m.outdated = err == nil, false
	switch {
	case err == nil:
		m.suspected = health{}
	case !m.suspected.failing():
		m.suspected = health{failingSince: time.Now(), err: err}
	default:
		m.suspected.err = err
	}
	if !back {
		return
	}
	for r, h := range m.readers {
		switch {
		case h.failing():
			r.endPause()
		case h.stale:
			r.restart()
		}
	}
}

// updateOutage declares the start or the end of an outage.
func (m *outageMonitor) updateOutage() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost {
		m.endOutageIfRecovered()
		return
	}
	since, err := m.oldestFailure()
	if err == nil || time.Since(since) < lostAfter {
		return
	}
	m.lost, m.lostAt = true, time.Now()
	m.log.Error("the Kubernetes API does not answer; EKCO begins nothing until it does", "since", since, "error", err)
	m.outages.begin(since, err.Error())
	for _, h := range m.readers {
		h.stale = true
	}
	m.answered = false // the next answer begins the recovery
}

// oldestFailure returns the oldest failure that can cause an outage. Failures of other readers only cause probes.
func (m *outageMonitor) oldestFailure() (time.Time, error) {
	var worst health
	if !m.answered {
		worst = m.suspected
	}
	for r, h := range m.readers {
		if r.isEssential() && h.failing() && (!worst.failing() || h.failingSince.Before(worst.failingSince)) {
			worst = *h
		}
	}
	return worst.failingSince, worst.err
}

func (m *outageMonitor) endOutageIfRecovered() {
	if !m.answered {
		return
	}
	for _, h := range m.readers {
		if h.stale {
			return
		}
	}
	m.lost = false
	m.log.Info("the Kubernetes API answers again and everything has been read again")
	m.outages.end()
}
