package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/etcd"
)

func member(id etcd.ID, name string, peerURLs ...string) etcd.Member {
	return etcd.Member{ID: id, Name: name, PeerURLs: peerURLs}
}

const (
	urlA = "https://10.0.0.1:2380"
	urlB = "https://10.0.0.2:2380"
	urlC = "https://10.0.0.3:2380"
	urlD = "https://10.0.0.4:2380"
)

func TestANodesMemberIsFoundByItsNameAndEveryPeerURL(t *testing.T) {
	a, b := member(1, "a", urlA), member(2, "b", urlB)
	for name, test := range map[string]struct {
		members []etcd.Member
		urls    []string
		want    etcd.ID
		err     error
	}{
		"name and address":                   {[]etcd.Member{a, b, member(3, "c", urlC)}, []string{urlC}, 3, nil},
		"its second peer URL":                {[]etcd.Member{a, member(3, "c", urlD, urlC)}, []string{urlC}, 3, nil},
		"the node's second address":          {[]etcd.Member{a, member(3, "c", urlC)}, []string{urlD, urlC}, 3, nil},
		"a port of its own":                  {[]etcd.Member{a, member(3, "c", "https://127.0.0.1:12382")}, []string{"https://127.0.0.1:12382"}, 3, nil},
		"a learner":                          {[]etcd.Member{a, {ID: 3, Name: "c", PeerURLs: []string{urlC}, Learner: true}}, []string{urlC}, 3, nil},
		"its addresses are not known":        {[]etcd.Member{a, member(3, "c", urlC)}, nil, 3, nil},
		"its name is not there":              {[]etcd.Member{a, b}, []string{urlC}, 0, etcd.ErrNoMember},
		"nothing is there":                   {nil, []string{urlC}, 0, etcd.ErrNoMember},
		"a replacement at its address":       {[]etcd.Member{a, b, member(4, "d", urlC)}, []string{urlC}, 0, etcd.ErrNoMember},
		"a name that only begins like it":    {[]etcd.Member{a, member(4, "c2", urlC)}, []string{urlC}, 0, etcd.ErrNoMember},
		"a replacement beside it":            {[]etcd.Member{member(3, "c", urlD), member(4, "d", urlC)}, []string{urlD}, 3, nil},
		"its name at another address":        {[]etcd.Member{a, member(3, "c", urlD)}, []string{urlC}, 0, etcd.ErrOtherAddress},
		"another port at its address":        {[]etcd.Member{a, member(3, "c", "https://10.0.0.3:2390")}, []string{urlC}, 0, etcd.ErrOtherAddress},
		"its name twice, once here":          {[]etcd.Member{member(3, "c", urlC), member(4, "c", urlD)}, []string{urlC}, 3, nil},
		"its name twice, both here":          {[]etcd.Member{member(3, "c", urlC), member(4, "c", urlD)}, []string{urlC, urlD}, 0, etcd.ErrAmbiguous},
		"its name twice, addresses unknown":  {[]etcd.Member{member(3, "c", urlC), member(4, "c", urlD)}, nil, 0, etcd.ErrAmbiguous},
		"it never started":                   {[]etcd.Member{a, member(3, "", urlC)}, []string{urlC}, 3, nil},
		"another never started":              {[]etcd.Member{a, member(3, "", urlD)}, []string{urlC}, 0, etcd.ErrNoMember},
		"never started, addresses unknown":   {[]etcd.Member{a, member(3, "", urlC)}, nil, 0, etcd.ErrNoMember},
		"never started beside its name here": {[]etcd.Member{member(3, "c", urlC), member(4, "", urlD)}, []string{urlC, urlD}, 3, nil},
		"never started, its name elsewhere":  {[]etcd.Member{member(3, "c", urlD), member(4, "", urlC)}, []string{urlC}, 0, etcd.ErrAmbiguous},
		"two never started":                  {[]etcd.Member{member(3, "", urlC), member(4, "", urlD)}, []string{urlC, urlD}, 0, etcd.ErrAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := etcd.Match(test.members, "c", test.urls, []string{urlA, urlB})
			if !errors.Is(err, test.err) || got.ID != test.want {
				t.Errorf("got member %s, error %v; want %s, %v", got.ID, err, test.want, test.err)
			}
		})
	}
}

func TestAMemberThatNeverStartedMayBeOfTheNodeThatHasItsAddressNow(t *testing.T) {
	a, joining := member(1, "a", urlA), member(4, "", urlC)
	learner := joining
	learner.Learner = true
	for name, test := range map[string]struct {
		members []etcd.Member
		others  []string
		want    etcd.ID
		err     error
	}{
		"nobody has the address":             {[]etcd.Member{a, joining}, []string{urlA, urlD}, 4, nil},
		"another node has it":                {[]etcd.Member{a, joining}, []string{urlA, urlC + "/"}, 0, etcd.ErrAmbiguous},
		"another node has it, as a learner":  {[]etcd.Member{a, learner}, []string{urlA, urlC}, 0, etcd.ErrAmbiguous},
		"it has started there":               {[]etcd.Member{a, member(4, "d", urlC)}, []string{urlA, urlC}, 0, etcd.ErrNoMember},
		"the node's own member is there too": {[]etcd.Member{a, member(3, "c", urlC), member(4, "", urlC)}, []string{urlC}, 3, nil},
		"the node's own is elsewhere":        {[]etcd.Member{a, member(3, "c", urlD), joining}, []string{urlC}, 0, etcd.ErrAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := etcd.Match(test.members, "c", []string{urlC}, test.others)
			if !errors.Is(err, test.err) || got.ID != test.want {
				t.Errorf("got member %s, error %v; want %s, %v", got.ID, err, test.want, test.err)
			}
		})
	}
}

func TestPeerURLsOfTheSameMeaningAreTheSame(t *testing.T) {
	for name, test := range map[string]struct{ theirs, ours string }{
		"a slash at the end": {"https://10.0.0.3:2380/", urlC},
		"upper case":         {"HTTPS://Node-C.Example:2380", "https://node-c.example:2380"},
		"IPv6 in long form":  {"https://[fd00:0:0:0:0:0:0:3]:2380", "https://[fd00::3]:2380"},
		"IPv4 inside IPv6":   {"https://[::ffff:10.0.0.3]:2380", urlC},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := etcd.Match([]etcd.Member{member(3, "c", test.theirs)}, "c", []string{test.ours}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnAmbiguousMatchNamesBothCandidates(t *testing.T) {
	_, err := etcd.Match([]etcd.Member{member(0xab, "c", urlC), member(0xcd, "c", urlD)}, "c", nil, nil)
	for _, want := range []string{"c", "ab", "cd", urlC, urlD} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

func TestAMemberThatStartedUnderAnotherNameIsNotTheCapturedOne(t *testing.T) {
	captured := member(3, "", urlC)
	for name, test := range map[string]struct {
		members []etcd.Member
		err     error
	}{
		"unchanged":                    {[]etcd.Member{member(3, "", urlC)}, nil},
		"started as the node":          {[]etcd.Member{member(3, "c", urlC)}, nil},
		"started as another node":      {[]etcd.Member{member(3, "d", urlC)}, etcd.ErrOtherMember},
		"gone":                         {[]etcd.Member{member(1, "a", urlA)}, etcd.ErrNoMember},
		"gone, and another in its URL": {[]etcd.Member{member(4, "c", urlC)}, etcd.ErrNoMember},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := etcd.Confirm(test.members, captured, "c")
			if !errors.Is(err, test.err) {
				t.Fatalf("error is %v, want %v", err, test.err)
			}
			if err == nil && got.ID != 3 {
				t.Errorf("found %s", got)
			}
		})
	}
}
