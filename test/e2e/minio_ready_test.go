package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/loopback"
)

func TestMinioPodIsUnreadyAfterThreeFailedProbes(t *testing.T) {
	ip := loopback.Network() + "1"
	var answers atomic.Int32
	page := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answers.Load())) }))
	page.Listener.Close()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ip+":9000")
	if err != nil {
		t.Fatal(err)
	}
	page.Listener = listener
	page.Start()
	t.Cleanup(page.Close)

	server := &minioServer{process: child.Start(t, "sleep", "600"), ip: ip}
	for i, probed := range []struct {
		answers int32
		ready   bool
	}{
		{503, false},                          // it has not answered yet
		{200, true}, {503, true}, {503, true}, // two missed
		{200, true}, {503, true}, {503, true}, {503, false}, {503, false}, // three
		{200, true},
	} {
		answers.Store(probed.answers)
		if got := server.ready(t.Context()); got != probed.ready {
			t.Errorf("probe %d was answered with %d, ready is %t", i, probed.answers, got)
		}
	}
	for range 2 * unreadyAfter { // the machine is busy
		server.probed(0, true)
	}
	if answers.Store(503); !server.ready(t.Context()) {
		t.Error("late answers count as missed")
	}
	server.process.Kill()
	if server.ready(t.Context()) {
		t.Error("a server that has ended is ready")
	}
}
