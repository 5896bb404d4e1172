package etcd

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Match returns the member that belonged to a node. peerURLs are all peer URLs
// that the node may have had, one for each of its addresses (kubeadm:
// https://ADDRESS:2380); none when its addresses are not known. others are the
// peer URLs that the members of other nodes may have.
//
// kubeadm names a member after its node, and one peer URL is unique among
// members. Neither says enough alone: a replacement node may have the old
// address under another name, or the old name at another address. Hence:
//
//	name of the member   a peer URL is the node's   it is
//	------------------   ------------------------   -----------------------------
//	the node's           yes                        the node's member
//	the node's           no                         not removed: ErrOtherAddress
//	the node's           (addresses not known)      the node's member
//	another              yes or no                  another node's member
//	none, never started  yes                        the node's member, if no
//	                                                member has the node's name
//	                                                and the URL is no other's
//	none, never started  no, or not known           unknown, and left alone
//
// Every peer URL of a member counts, not just the first. Two members that could
// be the node's are ErrAmbiguous, with both named; so is a never-started member
// at the node's address beside a member that has its name and another address.
// ErrNoMember says that the node has none.
//
// A member that never started carries nobody's name, so it may belong to a node
// that is joining at the address right now. kubeadm adds it when the Node is
// there already, whose URL is then among others: such a member is ErrAmbiguous
// until it has started. A Node can come after others were listed, so look again
// before the removal, and [Confirm].
func Match(members []Member, node string, peerURLs, others []string) (Member, error) {
	var named, elsewhere, nameless []Member
	for _, m := range members {
		here := m.At(peerURLs)
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
		return Member{}, fmt.Errorf("node %s: %w: %s, but the node's are %s; if it is the node's nevertheless, "+
			"remove it with etcdctl member remove", node, ErrOtherAddress, list(elsewhere), strings.Join(peerURLs, ", "))
	case slices.ContainsFunc(nameless, func(m Member) bool { return m.At(others) }):
		return Member{}, fmt.Errorf("node %s: %w: %s has not started, and another node has its address now: wait until it "+
			"has joined; if it never will, remove the member with etcdctl member remove", node, ErrAmbiguous, list(nameless))
	case len(nameless) == 1:
		return nameless[0], nil
	case len(nameless) > 1:
		return Member{}, ambiguous(node, nameless)
	}
	return Member{}, fmt.Errorf("node %s: %w", node, ErrNoMember)
}

// Confirm finds the member that was captured earlier for a node, by id, in a
// fresh list. It returns ErrNoMember when it is gone, and ErrOtherMember when it
// has got another node's name since, as a never-started one does that turns out
// to be of a joining node. etcd does not use an id twice.
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
	return fmt.Errorf("node %s: %w: %s; remove the dead one with etcdctl member remove", node, ErrAmbiguous, list(candidates))
}

func list(members []Member) string {
	var names []string
	for _, m := range members {
		names = append(names, m.String())
	}
	return strings.Join(names, " and ")
}

// At reports whether one of the member's peer URLs is one of these, however they
// are written.
func (m Member) At(peerURLs []string) bool {
	return slices.ContainsFunc(m.PeerURLs, func(u string) bool {
		return slices.ContainsFunc(peerURLs, func(other string) bool { return canonical(u) == canonical(other) })
	})
}

// canonical writes a URL so that two of the same meaning are equal: etcd keeps
// them as they were given to it.
func canonical(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return text
	}
	return strings.ToLower(parsed.Scheme) + "://" + canonicalHost(parsed.Hostname()) + ":" + parsed.Port()
}
