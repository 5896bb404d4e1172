package ceph

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestAClientThatOnlyReadsGivesCephNoCommandThatChangesAnything(t *testing.T) {
	s := &script{t: t, answers: map[string]answer{
		"osd tree": {stdout: string(recorded(t, "osd-tree-ok"))}, "osd dump": {stdout: string(recorded(t, "osd-dump"))},
	}}
	client := New(s, Options{ReadOnly: true})
	tree, err := client.Tree(t.Context())
	if err != nil || len(tree.OSDs) == 0 {
		t.Fatalf("read %+v, %v", tree, err)
	}
	for name, change := range map[string]func(context.Context) error{
		"Down":        func(ctx context.Context) error { return client.Down(ctx, 1, 2) },
		"Out":         func(ctx context.Context) error { return client.Out(ctx, 1) },
		"In":          func(ctx context.Context) error { return client.In(ctx, 1) },
		"Reweight":    func(ctx context.Context) error { return client.Reweight(ctx, 1, 0.5) },
		"Purge":       func(ctx context.Context) error { return client.Purge(ctx, tree.OSDs[0].Ref, false) },
		"Purge by id": func(ctx context.Context) error { return client.Purge(ctx, Ref{ID: 1}, false) },
		"CrushRemove": func(ctx context.Context) error { return client.CrushRemove(ctx, "w1") },
	} {
		if err := change(t.Context()); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
	for _, command := range s.ran() {
		if !slices.Contains([]string{"osd tree", "osd dump"}, command) {
			t.Errorf("ran ceph %s", command)
		}
	}
}

func TestNothingThatChangesAnythingIsEverPutIntoAConversation(t *testing.T) {
	for name, asked := range map[string]command{
		"a change":                            {args: []string{"osd", "out", "1"}, changes: true},
		"a question that says it changes":     {args: []string{"osd", "tree"}, changes: true},
		"a change that passes for a question": {args: []string{"osd", "out", "1"}},
		"what begins like a question":         {args: []string{"osd", "tree", "down"}},
		"a second line":                       {args: []string{"status\nosd", "out", "1"}},
		"a second line after ids":             {args: []string{"osd", "safe-to-destroy", "1\nosd out 2"}},
		"an option":                           {args: []string{"osd", "safe-to-destroy", "-1"}},
		"what is no id":                       {args: []string{"osd", "safe-to-destroy", "1", "all"}},
		"an unknown question":                 {args: []string{"osd", "df", "tree"}},
		"nothing":                             {},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := io.Pipe()
			v := &session{stdin: out}
			if _, err := v.begin([]command{{args: []string{"status"}}, asked}); !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
			_ = out.Close()
			if written, err := io.ReadAll(in); len(written) > 0 || err != nil {
				t.Errorf("wrote %q, %v", written, err)
			}
		})
	}
}

func TestAClientThatOnlyReadsConversesAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &talker{script: &script{t: t, answers: allRecorded(t)}, at: "tools/ceph"}
		client := New(k, Options{ReadOnly: true})
		wantSame(t, askAll(t, client), truthOf(t, allRecorded(t)))
		for name, change := range map[string]error{
			"Down": client.Down(t.Context(), 1), "Out": client.Out(t.Context(), 1), "In": client.In(t.Context(), 1),
			"Reweight": client.Reweight(t.Context(), 1, 0.5), "Purge": client.Purge(t.Context(), Ref{ID: 1}, false), "CrushRemove": client.CrushRemove(t.Context(), "w1"),
		} {
			if !errors.Is(change, ErrReadOnly) {
				t.Errorf("%s: %v, want ErrReadOnly", name, change)
			}
		}
		if len(k.argv) > 0 {
			t.Errorf("ran %q", k.argv)
		}
		for _, line := range k.heard() {
			for _, word := range []string{"down", "out", "in", "reweight", "purge", "rm"} {
				if slices.Contains(strings.Fields(line), word) {
					t.Errorf("asked %q", line)
				}
			}
		}
		client.Close()
	})
}
