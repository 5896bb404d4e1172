package main

import (
	"strings"
	"testing"
)

func TestACommandThatDoesNotExistIsCalledThatWhateverFlagsItHas(t *testing.T) {
	for _, test := range []struct{ typed, want string }{
		{"renew-everything --ttl 1h", `unknown command "renew-everything"`},
		{"--journal x.db bogus -x", `unknown command "bogus"`},
		{"bogus", `unknown command "bogus"`},
		{"journal bogus --x", `unknown command "bogus" of "ekco journal"`},
		{"statu", `unknown command "statu"; did you mean status?`},
		{"journal verfy --quiet", `unknown command "verfy" of "ekco journal"; did you mean verify?`},
		// Here it is the flag.
		{"status --bogus", "unknown flag: --bogus"},
		{"--bogus status", "unknown flag: --bogus"},
		{"purge-node worker-2 --bogus", "unknown flag: --bogus"},
	} {
		d := newDesk(t, &fakeOperator{})
		d.expect(d.types(strings.Fields(test.typed)...), exitUsage, "", "ekco: "+test.want)
	}
}

func TestAMissingArgumentIsAskedForByWhatItIs(t *testing.T) {
	for _, test := range []struct{ typed, want string }{
		{"purge-node", "give the node's name: ekco purge-node NAME"},
		{"purge-node a b", `purge-node takes one argument, the node's name; it was given 2: "a", "b"`},
		{"retry", `give the action's id, which "ekco status" shows, or the name of its node or thing: ekco retry ACTION|NAME`},
		{"cancel", `give the action's id, which "ekco status" shows, or the name of its node or thing: ekco cancel ACTION|NAME`},
		{"journal export", "give the name of the file to write: ekco journal export FILE"},
		{"journal import", "give the name of the file to read: ekco journal import FILE"},
		{"pause a b --reason r", `pause takes at most one argument, the name of a node or thing; it was given 2: "a", "b"`},
		{"resume a b", `resume takes at most one argument, the name of a node or thing; it was given 2: "a", "b"`},
		{"history /worker-2", `history takes a node's name or KIND/NAME, such as node/worker-2; it was given "/worker-2"`},
		{"history lamp/a lamp/b", `history takes at most one argument, KIND/NAME; it was given 2: "lamp/a", "lamp/b"`},
		{"explain a b", `explain takes at most one argument, the name of a node or thing, or an action's id; it was given 2: "a", "b"`},
		{"status worker-2 worker-3", `status takes at most one argument, the name of a node or thing; it was given 2: "worker-2", "worker-3"`},
		{"journal accept all", `journal accept takes no argument; it was given 1: "all"`},
	} {
		d := newDesk(t, &fakeOperator{})
		d.expect(d.types(strings.Fields(test.typed)...), exitUsage, "", "ekco: "+test.want)
	}
}
