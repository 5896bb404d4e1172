package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/replicatedhq/ekco/test/child"
)

func TestAServerThatMissesAProbeStaysReadyAndOneThatIsGoneOrNewDoesNot(t *testing.T) {
	ip := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
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
	server.process.Kill()
	if server.ready(t.Context()) {
		t.Error("a server that has ended is ready")
	}
}
