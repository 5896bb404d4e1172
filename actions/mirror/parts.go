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

// ErrIncomplete is returned if a part that the index names is missing or changed. Unless this journal wrote the mirror,
// EKCO then leaves it unchanged until a person restores or deletes it.
var ErrIncomplete = errors.New("the mirror is incomplete")

// maxWrites limits the parallel writes of parts.
const maxWrites = 8

// parts is the state of the parts in the cluster, as far as the goroutine in Run knows it.
type parts struct {
	// owner is in the names of this EKCO's parts; it is "" until EKCO has listed the existing parts. It changes
	// whenever another EKCO may have replaced the index. So an EKCO that was suspended does not know the new names, and
	// cannot delete the new parts.
	owner  string
	groups int
	// existing has this EKCO's parts, by name. obsolete has the names of parts to delete. indexed is true after an
	// index was written that does not name the obsolete parts.
	existing map[string]bool
	obsolete []string
	indexed  bool
}

// maxObsolete is the maximum number of parts that could not be deleted. Above it, EKCO writes no more parts.
const maxObsolete = 128

// claimParts chooses a new owner and lists the existing parts, which become obsolete when this EKCO's index is written.
// If another EKCO is about to write an index that names them, one of the two writes fails, and the EKCO whose write
// failed must claim again.
func (m *Mirror) claimParts(ctx context.Context) {
	m.parts = parts{owner: strings.ToLower(rand.Text()[:10]), groups: m.parts.groups, existing: map[string]bool{}}
	listed, err := m.api.MirrorParts(ctx)
	if err != nil {
		m.log.Debug("cannot list the parts of earlier mirrors; they are not deleted", "error", err)
	}
	for name := range listed {
		m.parts.obsolete = append(m.parts.obsolete, name)
	}
}

// writeParts writes the parts of the plan that do not exist yet.
func (m *Mirror) writeParts(ctx context.Context, p plan) error {
	if len(m.parts.obsolete) > maxObsolete && m.parts.indexed {
		if err := m.deleteObsoleteParts(ctx, p.bodies); len(m.parts.obsolete) > maxObsolete {
			return fmt.Errorf("cannot delete %d ConfigMaps ekco-journal-… of earlier mirrors; allow EKCO to delete them: %w", len(m.parts.obsolete), err)
		}
	}
	var missing []string
	for name := range p.bodies {
		if !m.parts.existing[name] {
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
		m.parts.existing[name] = true
	})
	if failed != nil {
		return fmt.Errorf("write the parts of the mirror: %w", failed)
	}
	return nil
}

// pruneParts deletes the parts that the new index does not name.
func (m *Mirror) pruneParts(ctx context.Context, named map[string]string) {
	m.parts.indexed = true
	for name := range m.parts.existing {
		if _, still := named[name]; !still {
			delete(m.parts.existing, name)
			m.parts.obsolete = append(m.parts.obsolete, name)
		}
	}
	if err := m.deleteObsoleteParts(ctx, named); err != nil {
		m.log.Debug("cannot delete parts of earlier mirrors; EKCO retries after the next write", "error", err)
	}
}

// deleteObsoleteParts deletes the obsolete parts, except those that the new index names, and returns the first error.
// No other EKCO's index names obsolete parts: to replace the index, an EKCO must claim again, so its parts have other
// names.
func (m *Mirror) deleteObsoleteParts(ctx context.Context, named map[string]string) (failed error) {
	m.parts.obsolete = slices.DeleteFunc(m.parts.obsolete, func(name string) bool {
		if _, again := named[name]; again {
			return true
		}
		err := kube.IgnoreNotFound(m.api.DeleteMirrorPart(ctx, name))
		failed = cmp.Or(failed, err)
		return err == nil
	})
	return failed
}

func (m *Mirror) readActions(ctx context.Context, content *Content) error {
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
