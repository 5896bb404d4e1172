package mirror

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// ErrIncomplete is returned when a part is not what the mirror's index names. Then the
// mirror must stay as it is, unless it is this journal's own, until a person gives it up.
var ErrIncomplete = errors.New("the mirror is incomplete")

// maxWrites bounds the writes of parts at the same time.
const maxWrites = 8

// parts are those in the cluster, as far as the goroutine in Run knows.
type parts struct {
	// owner is in the names of what this Mirror writes; "" until it has listed what is there. It gets a
	// new one whenever somebody else may have replaced the index: then nobody who was stopped
	// meanwhile knows the names of its parts, or deletes one.
	owner  string
	groups int
	// there are the own parts, by name; obsolete are the names of those that were there before. indexed is set once an
	// index was written that names none of those.
	there    map[string]bool
	obsolete []string
	indexed  bool
}

// maxObsolete is how many parts may be left that could not be deleted. Then no more are written.
const maxObsolete = 128

// claim begins to write parts. Whatever is there now is obsolete once the own index is written: if another
// EKCO is about to name it, one of the two writes of the index fails, and that EKCO claims anew.
func (m *Mirror) claim(ctx context.Context) {
	m.parts = parts{owner: strings.ToLower(rand.Text()[:10]), groups: m.parts.groups, there: map[string]bool{}}
	listed, err := m.api.MirrorParts(ctx)
	if err != nil {
		m.log.Debug("cannot list the parts of earlier mirrors; they are not deleted", "error", err)
	}
	for name := range listed {
		m.parts.obsolete = append(m.parts.obsolete, name)
	}
}

// writeParts writes those parts of the plan that are not there.
func (m *Mirror) writeParts(ctx context.Context, p plan) error {
	if len(m.parts.obsolete) > maxObsolete && m.parts.indexed {
		if err := m.discard(ctx, p.bodies); len(m.parts.obsolete) > maxObsolete {
			return fmt.Errorf("cannot delete %d ConfigMaps ekco-journal-… of earlier mirrors; allow EKCO to delete them: %w", len(m.parts.obsolete), err)
		}
	}
	var missing []string
	for name := range p.bodies {
		if !m.parts.there[name] {
			missing = append(missing, name)
		}
	}
	var mu sync.Mutex
	var failed error
	parallel.Each(maxWrites, missing, func(name string) {
		err := m.api.WriteMirrorPart(ctx, name, []byte(p.bodies[name]))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		m.parts.there[name] = true
	})
	if failed != nil {
		return fmt.Errorf("write the parts of the mirror: %w", failed)
	}
	return nil
}

// prune deletes the parts that the index, which was just written, does not name.
func (m *Mirror) prune(ctx context.Context, named map[string]string) {
	m.parts.indexed = true
	for name := range m.parts.there {
		if _, still := named[name]; !still {
			delete(m.parts.there, name)
			m.parts.obsolete = append(m.parts.obsolete, name)
		}
	}
	if err := m.discard(ctx, named); err != nil {
		m.log.Debug("cannot delete parts of earlier mirrors; EKCO retries after the next write", "error", err)
	}
}

// discard deletes the obsolete parts, unless they are named again, and returns why some stay. Nobody else can have
// named one meanwhile: whoever replaces the index has claimed anew, and so has other names.
func (m *Mirror) discard(ctx context.Context, named map[string]string) (failed error) {
	m.parts.obsolete = slices.DeleteFunc(m.parts.obsolete, func(name string) bool {
		if _, again := named[name]; again {
			return true
		}
		err := kube.Deleted(m.api.DeleteMirrorPart(ctx, name))
		failed = cmp.Or(failed, err)
		return err == nil
	})
	return failed
}

// assemble reads the actions that are in parts.
func (m *Mirror) assemble(ctx context.Context, content *Content) error {
	if len(content.Parts) == 0 {
		return nil
	}
	listed, err := m.api.MirrorParts(ctx)
	if err != nil {
		return fmt.Errorf("read the parts of the mirror: %w", err)
	}
	var lacks []string
	body, whole := "", true
	for _, part := range content.Parts {
		piece, there := listed[part.Name]
		switch {
		case !there:
			lacks = append(lacks, fmt.Sprintf("ConfigMap %s is missing (%s)", part.Name, strings.Join(part.Actions, ", ")))
		case hashOf(string(piece)) != part.SHA256:
			lacks = append(lacks, fmt.Sprintf("ConfigMap %s was changed (%s)", part.Name, strings.Join(part.Actions, ", ")))
		}
		if !there || hashOf(string(piece)) != part.SHA256 {
			content.LeftOut = append(content.LeftOut, part.Actions...)
		}
		whole = whole && there && hashOf(string(piece)) == part.SHA256
		body += string(piece)
		if !part.Ends {
			continue
		}
		var actions []journal.ActionRecord
		if err := json.Unmarshal([]byte(body), &actions); whole && err != nil {
			lacks = append(lacks, fmt.Sprintf("ConfigMap %s: %v", part.Name, err))
		} else if whole {
			content.Actions = append(content.Actions, actions...)
		}
		body, whole = "", true
	}
	slices.SortStableFunc(content.Actions, byWeight(nil))
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrIncomplete, strings.Join(lacks, "; "))
}
