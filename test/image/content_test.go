package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/version"
)

// forEach runs a test on the image of each architecture.
func forEach(t *testing.T, test func(t *testing.T, architecture string, i image)) {
	for _, architecture := range architectures {
		t.Run(architecture, func(t *testing.T) { test(t, architecture, readImage(t, architecture)) })
	}
}

func TestTheArchiveOfBothIsThatOfEach(t *testing.T) {
	l := readLayout(t, file(".tar"))
	var top, platforms index
	l.decode(t, "index.json", &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["io.containerd.image.name"] != name {
		t.Fatalf("the archive is of %+v, want one image %s", top.Manifests, name)
	}
	l.blob(t, top.Manifests[0])
	l.decode(t, "blobs/"+strings.Replace(top.Manifests[0].Digest, ":", "/", 1), &platforms)
	var got []string
	for _, d := range platforms.Manifests {
		var one index
		single := readLayout(t, file("-"+d.Platform.Architecture+".tar"))
		single.decode(t, "index.json", &one)
		if one.Manifests[0].Digest != d.Digest || one.Manifests[0].Annotations["io.containerd.image.name"] != name {
			t.Errorf("%s: the archive of its own has %+v, want digest %s", d.Platform.Architecture, one.Manifests[0], d.Digest)
		}
		for blob, content := range single {
			if strings.HasPrefix(blob, "blobs/") && !bytes.Equal(l[blob], content) {
				t.Errorf("%s: %s is not in the archive of both", d.Platform.Architecture, blob)
			}
		}
		got = append(got, d.Platform.OS+"/"+d.Platform.Architecture)
	}
	if ofAMD64 := readLayout(t, file("-amd64.tar"))["manifest.json"]; len(ofAMD64) == 0 || !bytes.Equal(l["manifest.json"], ofAMD64) {
		t.Errorf("docker load would read %s, want %s", l["manifest.json"], ofAMD64)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(got, want) {
		t.Errorf("platforms are %q, want %q", got, want)
	}
}

func TestAContainerStartsEkcoAsRoot(t *testing.T) {
	forEach(t, func(t *testing.T, architecture string, i image) {
		c := i.config
		if c.OS != "linux" || c.Architecture != architecture {
			t.Errorf("platform is %s/%s", c.OS, c.Architecture)
		}
		if !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/ekco"}) || len(c.Config.Cmd) > 0 || c.Config.User != "0" {
			t.Errorf("entrypoint %q, command %q, user %q", c.Config.Entrypoint, c.Config.Cmd, c.Config.User)
		}
		for _, want := range []string{"GIT_SHA=" + commit, "VERSION=" + version.Get().Version} {
			if !slices.Contains(c.Config.Env, want) {
				t.Errorf("environment %q lacks %s", c.Config.Env, want)
			}
		}
		if !slices.ContainsFunc(c.Config.Env, func(v string) bool {
			return strings.HasPrefix(v, "PATH=") && slices.Contains(strings.Split(v[5:], ":"), "/usr/bin")
		}) {
			t.Errorf("environment %q has no PATH to /usr/bin", c.Config.Env)
		}
	})
}

func TestCallersFindTheirPrograms(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	forEach(t, func(t *testing.T, architecture string, i image) {
		for _, program := range []string{
			"/usr/bin/ekco", "/bin/bash", "/bin/sh", "/bin/grep", "/bin/cat", "/bin/mkdir", "/bin/tar", "/usr/bin/awk", "/bin/sed", "/usr/bin/find", "/bin/gzip",
		} {
			found := i.resolve(t, program)
			if found.Typeflag != tar.TypeReg || found.Mode&0o111 != 0o111 {
				t.Errorf("%s is %q of mode %o, want a program for everybody", program, found.Typeflag, found.Mode)
			}
			if machine := i.elf(t, program).Machine; machine != machines[architecture] {
				t.Errorf("%s is for %s", program, machine)
			}
		}
		if tmp := i.resolve(t, "/tmp"); tmp.Typeflag != tar.TypeDir || tmp.Mode&0o7777 != 0o1777 {
			t.Errorf("/tmp is %q of mode %o, want a directory everybody can write to", tmp.Typeflag, tmp.Mode)
		}
		if passwd := string(i.resolve(t, "/etc/passwd").content); !strings.HasPrefix(passwd, "root:*:0:0:") {
			t.Errorf("/etc/passwd does not begin with a root without password: %.40q", passwd)
		}
	})
}

func TestEkcoIsStatic(t *testing.T) {
	forEach(t, func(t *testing.T, _ string, i image) {
		for _, segment := range i.elf(t, "/usr/bin/ekco").Progs {
			if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
				t.Errorf("/usr/bin/ekco has a segment %s", segment.Type)
			}
		}
	})
}

func TestEveryLibraryAProgramNeedsIsThere(t *testing.T) {
	forEach(t, func(t *testing.T, _ string, i image) {
		there := map[string]bool{}
		for file := range i.files {
			there[path.Base(file)] = true
		}
		programs := 0
		for file, found := range i.files {
			if found.Typeflag != tar.TypeReg || !strings.HasPrefix(string(found.content), elf.ELFMAG) {
				continue
			}
			programs++
			needed, err := i.elf(t, file).ImportedLibraries()
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			for _, library := range needed {
				if !there[library] {
					t.Errorf("%s needs %s", file, library)
				}
			}
		}
		if programs < 100 {
			t.Errorf("looked at only %d programs and libraries", programs)
		}
	})
}

func TestTheImageIsSmall(t *testing.T) {
	const limit = 60_000_000
	forEach(t, func(t *testing.T, _ string, i image) {
		var size int64
		for _, layer := range i.manifest.Layers {
			size += layer.Size
		}
		t.Logf("%.1f MB compressed, of these %.1f MB Debian", float64(size)/1e6, float64(i.manifest.Layers[0].Size)/1e6)
		if size > limit || size < 10_000_000 {
			t.Errorf("the layers have %d bytes, want at most %d, and no empty image", size, limit)
		}
	})
}

func TestNothingIsLeftOfTheBuildOrItsMachine(t *testing.T) {
	unwanted := []string{
		"etc/machine-id", "etc/resolv.conf", "etc/hostname", "etc/apt", "etc/fstab", "etc/ld.so.cache", "usr/share/man", "usr/share/info",
		"usr/share/locale", "usr/share/lintian", "var/lib/apt", "var/lib/dbus",
	}
	forEach(t, func(t *testing.T, _ string, i image) {
		for file, found := range i.files {
			for _, name := range unwanted {
				if file == name || strings.HasPrefix(file, name+"/") {
					t.Errorf("%s is in the image", file)
				}
			}
			switch top, _, _ := strings.Cut(strings.TrimPrefix(file, "var/"), "/"); {
			case found.Typeflag == tar.TypeReg && (top == "cache" || top == "log" || top == "tmp"):
				t.Errorf("%s is in the image", file)
			case strings.HasPrefix(file, "dev/") || strings.HasPrefix(file, "proc/") || strings.HasPrefix(file, "run/"):
				t.Errorf("%s is in the image", file)
			case strings.HasPrefix(file, "usr/share/doc/") && found.Typeflag == tar.TypeReg && path.Base(file) != "copyright" && file != sbomPath:
				t.Errorf("%s is documentation", file)
			}
			if found.Uname != "" || found.Gname != "" || len(found.PAXRecords) > 0 {
				t.Errorf("%s has owner %q, group %q, records %v", file, found.Uname, found.Gname, found.PAXRecords)
			}
		}
	})
}

// The lower layer has the time of its newest package, the upper one the commit's.
func TestNoTimeIsThatOfTheBuild(t *testing.T) {
	forEach(t, func(t *testing.T, _ string, i image) {
		if created, err := time.Parse(time.RFC3339, i.config.Created); err != nil || created.Unix() != epoch {
			t.Errorf("created %s, %v", i.config.Created, err)
		}
		times := map[time.Time]int{}
		for _, found := range i.files {
			times[found.ModTime.UTC()]++
		}
		delete(times, time.Unix(epoch, 0).UTC())
		if len(times) != 1 {
			t.Errorf("files have these times beside that of the commit: %v", times)
		}
		for at := range times {
			if time.Since(at) < time.Hour {
				t.Errorf("files have the time %s", at)
			}
		}
	})
}

func TestTheManifestAsksForThisImage(t *testing.T) {
	deployment, err := os.ReadFile("../../deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := "image: " + strings.TrimPrefix(name, "docker.io/") + "\n"
	if !strings.Contains(string(deployment), want) {
		t.Errorf("deployment.yaml does not have %q", want)
	}
}
