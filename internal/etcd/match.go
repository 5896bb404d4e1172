package etcd

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Match returns the member that belonged to a node. peerURLs are all peer URLs
// that the node may have had, one for each of its addresses (kubeadm:
// https://ADDRESS:2380), or none if its addresses are unknown. others are the
// peer URLs that the members of other nodes may have.
//
// kubeadm names a member after its node, and one peer URL is unique among
// members. Neither is enough alone: a replacement node may have the old
// address under another name, or the old name at another address. So:
//
//	name of the member   a peer URL is the node's   it is
//	------------------   ------------------------   -----------------------------
//	the node's           yes                        the node's member
//	the node's           no                         not removed: ErrOtherAddress
//	the node's           (addresses unknown)        the node's member
//	another              yes or no                  another node's member
//	none, never started  yes                        the node's member, if no
//	                                                member has the node's name
//	                                                and no other node has the URL
//	none, never started  no, or unknown             unknown: not removed
//
// Every peer URL of a member counts, not just the first. Two members that could
// belong to the node are ErrAmbiguous, and the error names both. It is also
// ErrAmbiguous if one member never started and has the node's address, and another
// member has the node's name and another address.
// ErrNoMember: the node has no member.
//
// A member that never started has no name yet, so it may belong to a node that is joining at the address right now.
// kubeadm creates the Node before it adds the member. Then the URL is in others, and the member is ErrAmbiguous until
// it has started. A Node can join after others were listed, so list both again before the removal, and call [Confirm].
func Match(members []Member, node string, peerURLs, others []string) (Member, error) {
	var named, elsewhere, nameless []Member
	for _, m := range members {
		here := m.HasPeerURL(peerURLs)
		switch {
		case m.Name == node && (here || len(peerURLs) == 0):
			named = append(named, m)
		case m.Name == node:
			elsewhere = append(elsewhere, m)
		case m.Name == "" && here:
			nameless = append(nameless, m)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return Member{}, ambiguous(node, named)
	case len(elsewhere) > 0 && len(nameless) > 0:
		return Member{}, ambiguous(node, append(elsewhere, nameless...))
	case len(elsewhere) > 0:
		return Member{}, fmt.Errorf("node %s: %w: %s, but the node's peer URLs are %s; if the member is the node's anyway, "+
			"remove it with etcdctl member remove", node, ErrOtherAddress, list(elsewhere), strings.Join(peerURLs, ", "))
	case slices.ContainsFunc(nameless, func(m Member) bool { return m.HasPeerURL(others) }):
		return Member{}, fmt.Errorf("node %s: %w: %s has not started, and another node has its address now: wait until that node "+
			"has joined; if it never will, remove the member with etcdctl member remove", node, ErrAmbiguous, list(nameless))
	case len(nameless) == 1:
		return nameless[0], nil
	case len(nameless) > 1:
		return Member{}, ambiguous(node, nameless)
	}
	return Member{}, fmt.Errorf("node %s: %w", node, ErrNoMember)
}

// Confirm finds a member in a new list by its id. captured is the member that [Match] returned earlier for the node.
// Confirm returns ErrNoMember if the member is gone, and ErrOtherMember if it now has the name of another node: then it
// had not started earlier and belongs to a joining node. etcd does not reuse ids.
func Confirm(members []Member, captured Member, node string) (Member, error) {
	at := slices.IndexFunc(members, func(m Member) bool { return m.ID == captured.ID })
	if at < 0 {
		return Member{}, fmt.Errorf("node %s: etcd member %s: %w", node, captured.ID, ErrNoMember)
	}
	if found := members[at]; found.Name != "" && found.Name != node {
		return Member{}, fmt.Errorf("node %s: %w: it is now %s", node, ErrOtherMember, found)
	}
	return members[at], nil
}

func ambiguous(node string, candidates []Member) error {
	return fmt.Errorf("node %s: %w: %s; remove the dead member with etcdctl member remove", node, ErrAmbiguous, list(candidates))
}

func list(members []Member) string {
	var names []string
	for _, m := range members {
		names = append(names, m.String())
	}
	return strings.Join(names, " and ")
}

// HasPeerURL reports whether the member has one of the peer URLs, in any notation.
func (m Member) HasPeerURL(peerURLs []string) bool {
	return slices.ContainsFunc(m.PeerURLs, func(u string) bool {
		return slices.ContainsFunc(peerURLs, func(other string) bool { return canonical(u) == canonical(other) })
	})
}

// canonical returns a URL in canonical form: etcd keeps URLs as they were given.
func canonical(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return text
	}
	return strings.ToLower(parsed.Scheme) + "://" + canonicalHost(parsed.Hostname()) + ":" + parsed.Port()
}
