// Package actionstest has the helpers for tests of actions: a journal with a fake clock, in which actions run, stop and
// continue; preflights with set answers; and the crash matrix.
//
// For its crash matrix, a capability defines how its world begins and how to describe the outcome:
//
//	func scene(w *actionstest.World) actionstest.Stage {
//		lamps := lampsim.New()
//		w.Request(lamp, journal.ActionRequested{Kind: "light"})
//		return actionstest.Stage{
//			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(light.New(lamps)) },
//			Outcome: lamps.String,
//		}
//	}
//
//	func TestCrash(t *testing.T) {
//		actionstest.Scenes{"light": {Set: scene, Points: 12}}.Run(t)
//	}
package actionstest
