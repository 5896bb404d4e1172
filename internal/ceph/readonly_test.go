package ceph

import (
	"context"
	"errors"
	"slices"
	"testing"
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
		"Purge":       func(ctx context.Context) error { return client.Purge(ctx, tree.OSDs[0].Ref) },
		"Purge by id": func(ctx context.Context) error { return client.Purge(ctx, Ref{ID: 1}) },
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
