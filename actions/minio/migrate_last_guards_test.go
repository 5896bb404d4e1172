package minio

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// TestAnUnknownTargetIsComparedAgain: an EKCO that did not record the id of ha-minio's store prepared the migration,
// this one switched, and then ha-minio got empty volumes.
func TestAnUnknownTargetIsComparedAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint()})
		r := b.start()
		b.Pass(DefaultKeepSource - time.Minute)
		b.EmptyTarget()
		b.Pass(2 * DefaultKeepSource)
		if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") {
			t.Errorf("%s\n%s", got, strings.Join(b.Story(), "\n"))
		}
		r.Halt()
	})
}

// TestWhatIsChangedOnBothSidesIsNamedWhereNoListTellsIt: the source has a legal hold since, ha-minio a tag.
func TestWhatIsChangedOnBothSidesIsNamedWhereNoListTellsIt(t *testing.T) {
	for name, late := range map[string]func(*duo){
		"on both sides": func(b *duo) {
			besides(s3.Attributes{LegalHold: true})(b)
			versions, err := b.Target.VersionsOf(b.T.Context(), kept, "document-0")
			if err != nil || len(versions) == 0 {
				b.T.Fatalf("%v, %v", versions, err)
			}
			v := versions[0]
			v.Attributes = &s3.Attributes{Tags: map[string]string{"a": "b"}}
			if err := b.Target.Annotate(b.T.Context(), kept, v, s3.Attributes{}); err != nil {
				b.T.Fatal(err)
			}
		},
		"and one of another version is removed there": func(b *duo) {
			besides(s3.Attributes{LegalHold: true})(b)
			b.Target.Lose(plain, "report", "null")
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.asks()
				m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration, listener: &listener{}}
				m.Stores = untold{miniosim.Network{Both: b.Both}}
				r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
				b.comes("done cut-over")
				late(b)
				b.Pass(DefaultKeepSource + 5*time.Minute)
				if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") {
					t.Errorf("it says %s; %s", b.LastLine(), got)
				}
				r.Halt()
			})
		})
	}
}
