package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/replicatedhq/ekco/journal"
)

// A ConfigMap can have 1 MiB. Up to inlineSize the index itself has the open actions, so that one write is enough. More
// data is spread over groups of about groupSize, and each group is cut into parts of at most partSize.
const (
	inlineSize = 256 << 10
	groupSize  = 128 << 10
	partSize   = 512 << 10
	indexSize  = 900 << 10
	// maxSize limits the size of all open actions in the mirror.
	maxSize = 8 << 20
)

// Part describes a ConfigMap with a part of the JSON of a group of actions.
type Part struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Ends is true for the last part of a group.
	Ends bool `json:"ends,omitempty"`
	// Actions has the ids of the group's actions, for persons.
	Actions []string `json:"actions,omitempty"`
}

// plan has the ConfigMaps that one round writes.
type plan struct {
	content Content
	// bodies has the contents of the parts, by name.
	bodies map[string]string
}

// planWrites plans how to write the content. It writes an action either completely or not at all. If all actions
// together exceed limit bytes, it first leaves out expendable and young ones, and names them. The names of the parts
// contain owner, so that no other EKCO has parts with the same names.
func planWrites(content Content, limit int, expendable []journal.ActionKind, owner string, groups *int) (plan, error) {
	actions := slices.Clone(content.Actions)
	slices.SortStableFunc(actions, byWeight(expendable))
	encoded := make(map[string]json.RawMessage, len(actions))
	total := 0
	content.LeftOut = nil
	for _, action := range actions {
		raw, err := json.Marshal(action)
		if err != nil {
			return plan{}, fmt.Errorf("encode action %s for the mirror: %w", action.ID, err)
		}
		if total+len(raw) > limit {
			content.LeftOut = append(content.LeftOut, action.ID)
			continue
		}
		encoded[action.ID] = raw
		total += len(raw) + len(",")
	}
	content.Actions = slices.DeleteFunc(slices.Clone(content.Actions), func(r journal.ActionRecord) bool { return encoded[r.ID] == nil })
	p := plan{content: content, bodies: map[string]string{}}
	if total > inlineSize {
		*groups = groupsFor(total, *groups)
		p.spreadActions(encoded, owner, *groups)
	}
	p.content.Format = formatFor(p.content)
	return p, nil
}

// groupsFor returns the number of groups. It rarely changes that number, because all parts change with it.
func groupsFor(total, groups int) int {
	groups = max(groups, 1)
	for total > groups*groupSize {
		groups *= 2
	}
	for groups > 1 && total < groups*groupSize/4 {
		groups /= 2
	}
	return groups
}

// spreadActions moves the actions into parts. The group of an action depends only on the action's id, so that a change
// of one action leaves the other groups unchanged.
func (p *plan) spreadActions(encoded map[string]json.RawMessage, owner string, groups int) {
	members := map[uint32][]string{}
	for _, action := range p.content.Actions {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(action.ID)) // it never returns an error
		group := hash.Sum32() % uint32(groups)
		members[group] = append(members[group], action.ID)
	}
	p.content.Actions = []journal.ActionRecord{}
	for _, group := range slices.Sorted(maps.Keys(members)) {
		body := "["
		for i, id := range members[group] {
			if i > 0 {
				body += ","
			}
			body += string(encoded[id])
		}
		for body += "]"; body != ""; {
			piece := body[:cutAt(body, partSize)]
			body = body[len(piece):]
			sum := hashOf(piece)
			part := Part{Name: "ekco-journal-" + owner + "-" + sum[:16], SHA256: sum, Ends: body == "", Actions: members[group]}
			p.content.Parts = append(p.content.Parts, part)
			p.bodies[part.Name] = piece
		}
	}
}

// cutAt returns the end of a piece with at most size bytes. It does not cut inside a character, because a ConfigMap
// must be valid UTF-8.
func cutAt(body string, size int) int {
	if len(body) <= size {
		return len(body)
	}
	for !utf8.RuneStart(body[size]) {
		size--
	}
	return size
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// encode returns the index, without the ended actions if there is not enough space. An EKCO with another journal then
// supersedes none of its actions, but verifies each step before it repeats the step.
func (p plan) encode() ([]byte, error) {
	raw, err := json.Marshal(p.content)
	if err == nil && len(raw) > indexSize {
		p.content.Ended = nil
		raw, err = json.Marshal(p.content)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode the mirror: %w", err)
	case len(raw) > indexSize:
		return nil, fmt.Errorf("encode the mirror: its index has %d bytes, and the limit is %d; end pauses or actions", len(raw), indexSize)
	}
	return raw, nil
}

// byWeight returns a sort function: first the actions that must not be lost, then the oldest.
func byWeight(expendable []journal.ActionKind) func(x, y journal.ActionRecord) int {
	rank := func(r journal.ActionRecord) int { return count(slices.Contains(expendable, r.Kind)) }
	return func(x, y journal.ActionRecord) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), x.RequestedAt.Compare(y.RequestedAt), cmp.Compare(x.ID, y.ID))
	}
}
