package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
)

func TestACallIsLoggedWithItsErrorOnlyIfItHasOne(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	calls := timeCalls(api.NewMetrics(), log)
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, `msg="asked ceph" call="osd tree" took=2s` + "\n"},
		{errors.New("no"), `msg="asked ceph" call="osd tree" took=2s error=no` + "\n"},
	} {
		logged.Reset()
		calls.ceph("osd tree", 2*time.Second, test.err)
		if !strings.HasSuffix(logged.String(), test.want) {
			t.Errorf("logged %q, want %q", logged.String(), test.want)
		}
	}
}
