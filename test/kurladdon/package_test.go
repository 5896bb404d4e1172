package kurladdon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/version"
)

// objects decodes the documents of a manifest.
func objects(t *testing.T, text string) (objects []map[string]any) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// TestTemplatesEqualManifestsOfDeploy allows only the placeholders that the hooks replace.
func TestTemplatesEqualManifestsOfDeploy(t *testing.T) {
	t.Parallel()
	dir, _ := buildPackage(t)
	templates := filepath.Join(addon(dir), "templates")
	for name, from := range map[string]string{
		"rbac.yaml": "rbac.yaml", "service.yaml": "service.yaml", "deployment.yaml": "deployment.yaml", "rook.yaml": "rook/rbac.yaml",
		"minio.yaml": "minio/rbac.yaml", "kotsadm.yaml": "kotsadm/rbac.yaml", "optional.yaml": "optional/rbac.yaml",
	} {
		text := content(t, templates, name)
		if name == "minio.yaml" {
			text = strings.Replace(text, `  namespace: "__MINIO_NAMESPACE__"`, "  namespace: minio", 1)
		}
		got := objects(t, text)
		if name == "deployment.yaml" {
			metadata := got[0]["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
			if diff := cmp.Diff(map[string]any{"ekco.kurl.sh/config-hash": "__CONFIG_HASH__"}, metadata["annotations"]); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			delete(metadata, "annotations")
		}
		if diff := cmp.Diff(objects(t, content(t, "../../deploy", from)), got); diff != "" {
			t.Errorf("%s (-deploy +add-on):\n%s", name, diff)
		}
	}
	config := objects(t, content(t, "../../deploy/configmap.yaml"))[0]["data"].(map[string]any)["config.yaml"]
	if diff := cmp.Diff(config, content(t, templates, "config.yaml")); diff != "" {
		t.Errorf("config.yaml (-deploy +add-on):\n%s", diff)
	}
}

// TestPackageHasTheFilesThatKURLReads checks the images of Manifest, reboot/shutdown.sh and host-preflight.yaml.
func TestPackageHasTheFilesThatKURLReads(t *testing.T) {
	t.Parallel()
	images := t.TempDir()
	archives := map[string]string{"ekco": ociArchive(t), "haproxy": dockerArchive(t, haproxyImage)}
	write(t, filepath.Join(images, "ekco.tar"), archives["ekco"], 0o600)
	write(t, filepath.Join(images, "haproxy.tar"), archives["haproxy"], 0o600)
	if out, err := exec.CommandContext(t.Context(), "gzip", filepath.Join(images, "haproxy.tar")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir, said := buildPackage(t, "EKCO_IMAGE_ARCHIVE="+images+"/ekco.tar", "HAPROXY_IMAGE_ARCHIVE="+images+"/haproxy.tar.gz")
	if strings.Contains(said, "not in the package") {
		t.Errorf("the build printed %s", said)
	}
	want := "image ekco docker.io/replicated/ekco:" + version.Get().Version + "\nimage haproxy docker.io/library/haproxy:3.4.2-alpine3.24\n"
	if got := content(t, addon(dir), "Manifest"); got != want {
		t.Errorf("the manifest is %q, want %q", got, want)
	}
	for _, name := range []string{"ekco", "haproxy"} {
		out, err := exec.CommandContext(t.Context(), "gunzip", "-c", filepath.Join(addon(dir), "images", name+".tar.gz")).Output()
		if err != nil || string(out) != archives[name] {
			t.Errorf("image %s is %q, %v", name, out, err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(addon(dir), "reboot", "shutdown.sh")).Output(); err != nil || len(out) == 0 {
		t.Errorf("reboot/shutdown.sh prints %q, %v", out, err)
	}
	var preflight map[string]any
	if err := yaml.UnmarshalStrict([]byte(content(t, addon(dir), "host-preflight.yaml")), &preflight); err != nil || preflight["kind"] != "HostPreflight" {
		t.Errorf("the preflight is %v, %v", preflight["kind"], err)
	}
}

// file is an entry of an archive.
type file struct{ name, content string }

func archive(t *testing.T, files ...file) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content))})
		if err == nil {
			_, err = w.Write([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const haproxyImage = "haproxy:3.4.2-alpine3.24"

// dockerArchive has the format of "docker save".
func dockerArchive(t *testing.T, image string) string {
	t.Helper()
	return archive(t, file{"manifest.json", `[{"Config":"config.json","RepoTags":["` + image + `"],"Layers":["1/layer.tar"]}]`},
		file{"config.json", "{}"}, file{"1/layer.tar", "a layer"})
}

// ociArchive has the format of "make image": an index of two images.
func ociArchive(t *testing.T) string {
	t.Helper()
	var files []file
	digest := func(content string) string {
		hex := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
		files = append(files, file{"blobs/sha256/" + hex, content})
		return `{"digest":"sha256:` + hex + `"}`
	}
	var images []string
	for _, architecture := range []string{"amd64", "arm64"} {
		config, layer := digest(`{"architecture":"`+architecture+`"}`), digest("layer of "+architecture)
		images = append(images, digest(`{"config":`+config+`,"layers":[`+layer+`]}`))
	}
	index := strings.TrimSuffix(digest(`{"manifests":[`+strings.Join(images, ",")+`]}`), "}") +
		`,"annotations":{"io.containerd.image.name":"docker.io/replicated/ekco:` + version.Get().Version + `"}}`
	return archive(t, append([]file{{"index.json", `{"manifests":[` + index + `]}`}, {"oci-layout", `{}`}}, files...)...)
}

// TestBuildRefusesIncompleteImages: some archives are truncated between two files, where tar reports nothing.
func TestBuildRefusesIncompleteImages(t *testing.T) {
	t.Parallel()
	oci, docker := ociArchive(t), dockerArchive(t, "replicated/ekco:"+version.Get().Version)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte(oci)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const block = 512 // of tar; a file here takes two
	for name, image := range map[string]string{
		"empty": "", "no archive": "ekco's image", "an archive of something else": archive(t, file{"a", "b"}),
		"a layer is truncated": docker[:5*block+3], "a layer is missing": docker[:4*block], "OCI: a layer is missing": oci[:len(oci)-4*block-2*block],
		"another image":    dockerArchive(t, haproxyImage),
		"another checksum": strings.Replace(oci, "layer of arm64", "layer of ARM64", 1), "compressed and truncated": zipped.String()[:zipped.Len()/2],
	} {
		dir, path := t.TempDir(), filepath.Join(t.TempDir(), "ekco.tar")
		write(t, path, image, 0o600)
		out, err := packageBuild(t, dir, "EKCO_IMAGE_ARCHIVE="+path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "cannot use "+path+" as an image archive") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if archives, err := filepath.Glob(filepath.Join(dir, "*.tar.gz")); err != nil || len(archives) > 0 {
			t.Errorf("%s: there is %q, %v", name, archives, err)
		}
	}
}

func TestBuildNamesMissingImages(t *testing.T) {
	t.Parallel()
	_, said := buildPackage(t, "EKCO_IMAGE_ARCHIVE=/nowhere/ekco.tar", "HAPROXY_IMAGE_ARCHIVE=")
	for _, want := range []string{"images/ekco.tar.gz is not in the package", "images/haproxy.tar.gz is not in the package", "docker.io/library/haproxy:3.4.2-alpine3.24"} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %q in %s", want, said)
		}
	}
}

func TestBuildIsReproducible(t *testing.T) {
	t.Parallel()
	image := filepath.Join(t.TempDir(), "ekco.tar")
	write(t, image, ociArchive(t), 0o600)
	sums := map[[sha256.Size]byte]bool{}
	for _, env := range []string{"TZ=UTC", "TZ=Asia/Kolkata", "LC_ALL=de_DE.UTF-8"} {
		dir, _ := buildPackage(t, env, "EKCO_IMAGE_ARCHIVE="+image)
		archives, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
		if err != nil || len(archives) != 1 {
			t.Fatalf("archives are %q, %v", archives, err)
		}
		sums[sha256.Sum256([]byte(content(t, archives[0])))] = true
	}
	if len(sums) != 1 {
		t.Errorf("there are %d different packages", len(sums))
	}
}

// TestPackageIsTheSameOnEveryHost: two builds on one host do not show what depends on its users, umask and file system.
func TestPackageIsTheSameOnEveryHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := packageBuild(t, dir, "VERSION=v9.8.7", "EKCO_IMAGE_ARCHIVE=/nowhere")
	build.Args = append([]string{"sh", "-c", `umask 077 && exec "$0" "$@"`}, build.Args...)
	build.Path = "/bin/sh"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	zipped, err := gzip.NewReader(strings.NewReader(content(t, dir, "ekco-9.8.7.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(zipped); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := int64(0o644)
		if header.Typeflag == tar.TypeDir {
			mode = 0o755
		}
		if header.Mode != mode || header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" || header.ModTime.Unix() != 1790000000 {
			t.Errorf("%s has mode %o, owner %d:%d %q:%q, time %s", header.Name, header.Mode, header.Uid, header.Gid, header.Uname, header.Gname, header.ModTime)
		}
		names = append(names, header.Name)
	}
	if !slices.IsSorted(names) || len(names) < 15 {
		t.Errorf("the files are %q, want them in order", names)
	}
	addon := filepath.Join(dir, "addons/ekco/9.8.7")
	for file, want := range map[string]string{
		"templates/deployment.yaml": "image: replicated/ekco:v9.8.7\n", "templates/config.yaml": "host_task_image: replicated/ekco:v9.8.7\n",
		"Manifest": "docker.io/replicated/ekco:v9.8.7\n",
	} {
		if !strings.Contains(content(t, addon, file), want) {
			t.Errorf("%s has no %q", file, want)
		}
	}
}

// newer finds syntax that bash 4.2 of RHEL 7 does not have.
var newer = map[string]*regexp.Regexp{
	"local -n":          regexp.MustCompile(`\b(local|declare|typeset) +-[a-zA-Z]*n`),
	"${x@Q}":            regexp.MustCompile(`\$\{[^}]*@[A-Za-z]\}`),
	"a negative index":  regexp.MustCompile(`\[-[0-9]+\]|:\s+-[0-9]+\}.*\[`),
	"wait -n":           regexp.MustCompile(`\bwait +-n`),
	"inherit_errexit":   regexp.MustCompile(`inherit_errexit|localvar_inherit|patsub_replacement`),
	"mapfile -d":        regexp.MustCompile(`\b(mapfile|readarray) +-d`),
	"EPOCHSECONDS":      regexp.MustCompile(`EPOCH(SECONDS|REALTIME)|SRANDOM|BASH_ARGV0`),
	"printf %(fmt)T":    regexp.MustCompile(`printf.*%\([^)]*\)T`),
	"${ command; }":     regexp.MustCompile(`\$\{[ |]`),
	"[[ -v array[x] ]]": regexp.MustCompile(`-v +[A-Za-z_]+\[`),
	"an empty list":     regexp.MustCompile(`(^|[^+])"\$\{options\[@\]\}"`),
}

// scripts are the files that kURL sources.
var scripts = []string{"../../deploy/kurl/install.sh", "../../deploy/kurl/loadbalancer.sh"}

func TestShellcheckFindsNothing(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("../../deploy/kurl/*.sh")
	if err != nil || len(all) < 3 {
		t.Fatalf("there are %q, %v", all, err)
	}
	if out, err := exec.CommandContext(t.Context(), "shellcheck", all...).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestScriptsHaveNoNewBashSyntax(t *testing.T) {
	t.Parallel()
	for _, script := range scripts {
		for i, line := range strings.Split(content(t, script), "\n") {
			for _, name := range slices.Sorted(maps.Keys(newer)) {
				if newer[name].MatchString(line) && !strings.Contains(line, "${options[@]+") {
					t.Errorf("%s line %d has %s: %s", script, i+1, name, line)
				}
			}
		}
	}
	for name, example := range map[string]string{
		"local -n": "local -n x=y", "${x@Q}": `echo "${x@Q}"`, "a negative index": "echo ${x[-1]}", "wait -n": "wait -n",
	} {
		if !newer[name].MatchString(example) {
			t.Errorf("%s is not found in %s", name, example)
		}
	}
}

// TestScriptsAreShortAndHaveOnlyFunctions: kURL sources install.sh twice, so code outside of functions would run again.
func TestScriptsAreShortAndHaveOnlyFunctions(t *testing.T) {
	t.Parallel()
	for _, script := range scripts {
		lines := strings.Split(content(t, script), "\n")
		if len(lines) >= 600 {
			t.Errorf("%s has %d lines, want less than 600", script, len(lines))
		}
		started := -1
		for i, line := range lines {
			switch {
			case strings.HasPrefix(line, "function ") && !strings.HasSuffix(line, "}"):
				started = i
			case line == "}":
				if length := i - started + 1; length >= 40 {
					t.Errorf("%s: %s has %d lines, want less than 40", script, lines[started], length)
				}
				started = -1
			case started < 0 && line != "" && !isAllowedOutsideOfFunctions(line):
				t.Errorf("%s line %d is outside of a function: %s", script, i+1, line)
			}
		}
	}
}

// TestHooksNameTheFunctionsOfKURLThatTheyCall: an older kURL may lack one, and the hook must say which before it starts.
func TestHooksNameTheFunctionsOfKURLThatTheyCall(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{}
	var text string
	for _, script := range scripts {
		text += regexp.MustCompile(`(?m)^ *#.*`).ReplaceAllString(content(t, script), "") + "\n"
	}
	for _, f := range regexp.MustCompile(`(?ms)^function (\w+)\(\) \{(?:\n(.*?)^\}| ([^\n]*) \}$)`).FindAllStringSubmatch(text, -1) {
		bodies[f[1]] = f[2] + f[3]
	}
	var ofKURL []string
	for _, f := range regexp.MustCompile(`(?m)^(\w+)\(\) \{`).FindAllStringSubmatch(content(t, "kurl.sh"), -1) {
		ofKURL = append(ofKURL, f[1])
	}
	needs := regexp.MustCompile(`(?m)^ *ekco_needs (.*)`)
	calls := func(body, name string) bool {
		return regexp.MustCompile(`(?m)(^ *|[;|&({] ?|\b(if|elif|until|while|then|do|else|!) |(spinner|ekco)_until \S+ )` + name + `([ ;)]|$)`).MatchString(body)
	}
	for _, hook := range []string{
		"ekco", "ekco_join", "ekco_post_init", "ekco_bootstrap_internal_lb", "ekco_handle_load_balancer_address_change_pre_init",
		"ekco_handle_load_balancer_address_change_post_init", "ekco_handle_load_balancer_address_change_kubeconfigs",
	} {
		named := needs.FindStringSubmatch(bodies[hook])
		if named == nil {
			t.Errorf("%s does not call ekco_needs", hook)
			continue
		}
		// A hook that another hook calls names its functions itself.
		for seen, queue := map[string]bool{hook: true}, []string{hook}; len(queue) > 0; queue = queue[1:] {
			for _, name := range ofKURL {
				if calls(bodies[queue[0]], name) && !slices.Contains(strings.Fields(named[1]), name) {
					t.Errorf("%s does not name %s, which %s calls", hook, name, queue[0])
				}
			}
			for name := range bodies {
				if !seen[name] && name != "ekco" && !needs.MatchString(bodies[name]) && regexp.MustCompile(`\b`+name+`\b`).MatchString(bodies[queue[0]]) {
					seen[name], queue = true, append(queue, name)
				}
			}
		}
	}
}

func isAllowedOutsideOfFunctions(line string) bool {
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, "function ") || strings.HasPrefix(line, `: "${`) ||
		line == `. "${BASH_SOURCE[0]%/*}/loadbalancer.sh"`
}

// TestDocsHaveEveryField compares the docs with fields.tsv. The rows of that file have their own test.
func TestDocsHaveEveryField(t *testing.T) {
	t.Parallel()
	install, configuration := content(t, "../../docs/install.md"), content(t, "../../docs/configuration.md")
	_, configuration, _ = strings.Cut(configuration, "## Which field")
	for row := range strings.Lines(content(t, "fields.tsv")) {
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if len(cells) != 3 {
			continue
		}
		field, key := cells[0], ""
		if cells[2] != "-" {
			key, _, _ = strings.Cut(cells[2], ":")
			if !strings.Contains(configuration, "`"+key+"`") {
				t.Errorf("docs/configuration.md does not say which field writes %s", key)
			}
		}
		if strings.HasPrefix(field, "(") || strings.Contains(field, " ") {
			continue
		}
		name := "`" + strings.TrimPrefix(field, "ekco.") + "`"
		if !slices.ContainsFunc(strings.Split(install, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "| `") && strings.Contains(line, name) && (key == "" || strings.Contains(line, "`"+key+"`"))
		}) {
			t.Errorf("docs/install.md does not say that %s writes %q", field, key)
		}
		if key != "" && !slices.ContainsFunc(strings.Split(configuration, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "| `") && strings.Contains(line, "`"+key+"`") && strings.Contains(line, "`"+field+"`")
		}) {
			t.Errorf("docs/configuration.md does not say that %s writes %s", field, key)
		}
	}
}
