package image

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/version"
	containerdtest "github.com/replicatedhq/ekco/test/containerd"
)

func TestContainerdImportsTheArchiveOfItsPlatform(t *testing.T) {
	imported(t, containerdtest.Start(t), "-"+runtime.GOARCH+".tar")
}

func TestContainerdImportsAndRunsTheArchiveOfBoth(t *testing.T) {
	server := containerdtest.Start(t)
	imported(t, server, ".tar")
	runs(t, server)
	writesToTheHost(t, server)
}

func imported(t *testing.T, server *containerdtest.Server, archive string) {
	t.Helper()
	if _, err := server.Ctr("image", "import", file(archive)); err != nil {
		t.Fatal(err)
	}
	names, err := server.Ctr("image", "ls", "--quiet")
	if err != nil || strings.TrimSpace(names) != name {
		t.Fatalf("containerd has the images %q, %v; want %s", names, err, name)
	}
}

func runs(t *testing.T, server *containerdtest.Server) {
	t.Helper()
	line := "EKCO " + version.Get().Version + " (commit " + commit + ", " + runtime.Version() + ", linux/" + runtime.GOARCH + ")\n"
	for _, run := range []struct {
		what    string
		options []string
		command []string
		want    string
	}{
		{"as the Deployment calls it", nil, []string{"/usr/bin/ekco", "version"}, line},
		{"through PATH", nil, []string{"ekco", "version"}, line},
		{"a shell", nil, []string{"bash", "-c", "ekco version"}, line},
		{
			"with the output in a file in /tmp that is searched, as installers do", nil,
			[]string{"/bin/bash", "-c", "ekco version >/tmp/change-lb-log 2>&1; grep -o 'EKCO v[0-9]' /tmp/change-lb-log && cat /tmp/change-lb-log"},
			"EKCO v0\n" + line,
		},
		{
			"with a read-only root and a /tmp of its own",
			[]string{"--read-only", "--mount", "type=tmpfs,dst=/tmp,options=rw"},
			[]string{"bash", "-c", "mkdir /tmp/a && echo written >/tmp/a/b && cat /tmp/a/b; (echo x >/etc/x) 2>/dev/null || echo read-only"},
			"written\nread-only\n",
		},
		{"as root, with its variables", nil, []string{"bash", "-c", "id -un; echo $VERSION $GIT_SHA"}, "root\n" + version.Get().Version + " " + commit + "\n"},
		{"tar, as kubectl cp does", nil, []string{"bash", "-c", "tar cf - /etc/passwd 2>/dev/null | gzip | gunzip | tar tf - | sed s/etc/x/"}, "x/passwd\n"},
	} {
		got, err := server.Run(run.options, name, run.command...)
		if err != nil || got != run.want {
			t.Errorf("%s: %q printed %q, %v; want %q", run.what, run.command, got, err, run.want)
		}
	}
}

// writesToTheHost writes as installers do with a container of the image.
func writesToTheHost(t *testing.T, server *containerdtest.Server) {
	t.Helper()
	host := t.TempDir()
	mount := "type=bind,src=" + host + ",dst=/host/etc,options=rbind:rw"
	if _, err := server.Run([]string{"--mount", mount}, name, "bash", "-c", "mkdir -p /host/etc/a && echo written >/host/etc/a/b"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(host, "a", "b"))
	if err != nil || info.Size() != int64(len("written\n")) {
		t.Errorf("the host has %v, %v", info, err)
	}
}
