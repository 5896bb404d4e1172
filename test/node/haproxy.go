package nodetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
)

// brokenHAProxy and refusingHAProxy are the names of images in which HAProxy does not work.
const (
	brokenHAProxy   = "ekco.test/haproxy:broken"
	refusingHAProxy = "ekco.test/haproxy:refusing"
)

// buildHAProxy writes an image of a real HAProxy under these names. Like Docker Hub's image, it runs a master with a
// worker, has its configuration in /usr/local/etc/haproxy, and has /bin/kill. In [brokenHAProxy], the check of a
// configuration passes, but HAProxy ends at once. In [refusingHAProxy], the check fails.
func buildHAProxy(ctx context.Context, path string, names ...string) error {
	const source = "../.." // the folder of EKCO's module
	all, err := loadbalancertest.Install(ctx, filepath.Join(source, "test/loadbalancer"))
	if err != nil {
		return err
	}
	tree := filepath.Dir(all[len(all)-1].Path)
	kill, err := compile(ctx, source, "kill", path)
	if err != nil {
		return err
	}
	content := []entry{
		{name: "bin/kill", mode: 0o755, content: kill},
		{name: "lib", link: "usr/lib"},
		{name: "lib64", link: "usr/lib64"},
	}
	for _, part := range []string{"usr/lib", "usr/lib64", "usr/sbin/haproxy"} {
		files, err := filesOf(tree, part)
		if err != nil {
			return err
		}
		if part == "usr/sbin/haproxy" && names[0] == refusingHAProxy {
			files[0].content = kill
		}
		content = append(content, files...)
	}
	command := []string{"/usr/sbin/haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"}
	if names[0] == brokenHAProxy {
		command = []string{"/usr/sbin/haproxy", "-v"}
	}
	return writeImage(path, command, names, content...)
}

// filesOf returns the files and links in a part of a directory tree.
func filesOf(tree, part string) (files []entry, err error) {
	err = filepath.WalkDir(filepath.Join(tree, part), func(path string, at fs.DirEntry, err error) error {
		if err != nil || at.IsDir() {
			return err
		}
		e := entry{name: strings.TrimPrefix(path, tree+"/"), mode: 0o755}
		if at.Type()&fs.ModeSymlink != 0 {
			e.link, err = os.Readlink(path)
		} else {
			e.content, err = os.ReadFile(path)
		}
		files = append(files, e)
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New(part + " of HAProxy is empty")
	}
	return files, err
}
