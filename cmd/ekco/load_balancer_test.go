package main

import (
	"os"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
)

// TestInThePodOfAHostTaskTheFilesOfTheHostAreWritten, the manifest only where an image is given.
func TestInThePodOfAHostTaskTheFilesOfTheHostAreWritten(t *testing.T) {
	d, host := newDesk(t, nil), loadbalancer.Host{Etc: t.TempDir()}
	for _, test := range []struct{ image, want string }{
		{"", `ekco-outcome {"result":{"backend":"kubernetes-primaries-`},
		{"--image=haproxy:1", `"image":"haproxy:1","version":"0","manifest":true}}`},
		{"--image=haproxy:2 --keep-manifest", `"image":"haproxy:1","version":"0"}}`},
		{"--image=haproxy:2 --tcp-probe", `"image":"haproxy:2","version":"0-tcp","manifest":true}}`},
		{"--image=a b", `ekco-outcome {"failed":"image \"a b\" is none`},
	} {
		args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1,fd00::2"}
		if test.image != "" {
			image, keep, kept := strings.Cut(test.image, " --")
			if args = append(args, image); kept {
				args = append(args, "--"+keep)
			}
		}
		d.expect(d.types(args...), exitDone, test.want, "")
		if strings.Count(d.out.String(), "\n") != 1 || d.errOut.Len() != 0 {
			t.Errorf("it says %s%s", d.out, d.errOut)
		}
		if test.image == "" {
			if _, err := os.Stat(host.ManifestPath()); !os.IsNotExist(err) {
				t.Errorf("the manifest: %v", err)
			}
		}
	}
	config, err := os.ReadFile(host.ConfigPath())
	if err != nil || strings.Count(string(config), "\n    server ") != 2 {
		t.Errorf("%v: %s", err, config)
	}
}
