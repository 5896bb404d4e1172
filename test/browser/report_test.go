package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/rig"
)

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{Fetch: []string{"./install.sh", rig.EKCOModules}, SkipGoroutineCheck: true, SkipNetworkCheck: true})
}

// overlaps is a function of the page: the texts of a selector of which one lies over the
// next, or is cut off by the drawing's edge.
const overlaps = `(selector => {
	const drawing = document.querySelector("svg[role=img]").getBoundingClientRect();
	const boxes = [...document.querySelectorAll(selector)].map(e => ({text: e.textContent, at: e.getBoundingClientRect()}));
	const over = (a, b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
	const bad = boxes.filter(b => b.at.left < drawing.left - 1 || b.at.right > drawing.right + 1 || b.at.bottom > drawing.bottom + 1).map(b => "cut off: " + b.text);
	boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => { if (over(a.at, b.at)) bad.push(a.text + " | " + b.text); }));
	return bad;
})`

// cut is a function of the page: the texts of a selector that go on outside of their box.
const cut = `(selector => [...document.querySelectorAll(selector)].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 60)))`

// report has the program write one, of the journal that the released version left.
func report(t *testing.T, arguments ...string) string {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join("..", "..")
	journal, err := os.ReadFile(filepath.Join(root, "testdata", "journals", "v0.29.0.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), journal, 0o600); err != nil {
		t.Fatal(err)
	}
	ekco := filepath.Join(dir, "ekco")
	if err := rig.BuildEKCO(t.Context(), root, ekco); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(ekco, append([]string{"report", "--journal", filepath.Join(dir, "journal.db")}, arguments...)...)
	command.Stderr = os.Stderr
	page, err := command.Output()
	if err != nil {
		t.Fatalf("ekco report: %v", err)
	}
	return written(t, dir, page)
}

func written(t *testing.T, dir string, page []byte) string {
	t.Helper()
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAReportIsReadableInABrowserThatHasNoNetwork(t *testing.T) {
	t.Parallel()
	file := report(t, "--since", "all")
	b := Start(t)
	for _, width := range []int{1280, 700} {
		t.Run(fmt.Sprintf("%d pixels", width), func(t *testing.T) {
			b.Width(width)
			b.Open(file)
			if picture := os.Getenv("EKCO_PICTURE"); picture != "" {
				b.Picture(fmt.Sprintf("%s-%d.png", picture, width))
			}
			if want := []string{"file://" + file}; !slices.Equal(b.Requests, want) {
				t.Errorf("the page asks for %q, want only itself", b.Requests)
			}
			if len(b.Complaints) > 0 {
				t.Errorf("the browser complains: %q", b.Complaints)
			}
			holdsReadable(t, b)
		})
	}
}

func holdsReadable(t *testing.T, b *Browser) {
	t.Helper()
	var verdict, title string
	b.Look(`document.querySelector(".verdict").innerText`, &verdict)
	b.Look(`document.title`, &title)
	if !strings.HasPrefix(verdict, "NEEDS YOU: ") || !strings.HasPrefix(title, "EKCO report") {
		t.Errorf("the verdict reads %q, the title %q", verdict, title)
	}
	var spans, actions, rows int
	b.Look(`document.querySelectorAll("svg[role=img] rect[height='14']").length`, &spans)
	b.Look(`document.querySelectorAll("svg[role=img] rect[height='4']").length`, &actions)
	b.Look(`document.querySelectorAll("table tr td").length`, &rows)
	if spans == 0 || actions == 0 || rows == 0 {
		t.Errorf("there are %d states, %d actions and %d cells of tables", spans, actions, rows)
	}
	var wide bool
	if b.Look(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide); wide {
		t.Error("the page is wider than the window")
	}
	var bad []string
	if b.Look(overlaps+`("svg[role=img] text")`, &bad); len(bad) > 0 {
		t.Errorf("labels of the drawing: %q", bad)
	}
	if b.Look(cut+`("pre, td, th, h1, h2, p")`, &bad); len(bad) > 0 {
		t.Errorf("texts that are cut off: %q", bad)
	}
	if b.Look(`[...document.querySelectorAll("td.when")].filter(e => getComputedStyle(e).whiteSpace !== "nowrap").map(e => e.innerText)`, &bad); len(bad) > 0 {
		t.Errorf("times that are broken into lines: %q", bad)
	}
	var unseen []string
	if b.Look(`[...document.querySelectorAll("svg[role=img] rect, svg[role=img] text")].filter(e => e.getBoundingClientRect().width < 0.5).map(e => e.textContent)`, &unseen); len(unseen) > 0 {
		t.Errorf("too small to be seen: %q", unseen)
	}
}

// Or the test above would hold whatever the page asks for.
func TestTheBrowserTellsWhatAPageAsksForAndWhatItIsKeptFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image := filepath.Join(dir, "image.png")
	b := Start(t)
	b.Open(written(t, dir, []byte(`<!DOCTYPE html><img src="file://`+image+`">`)))
	if !slices.Contains(b.Requests, "file://"+image) {
		t.Errorf("the page asked for %q, want its image", b.Requests)
	}
	b.Open(written(t, dir, []byte(`<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><script>1</script>`)))
	if len(b.Complaints) == 0 {
		t.Error("a script that the page may not run is no complaint")
	}
}
