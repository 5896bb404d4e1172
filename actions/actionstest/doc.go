// Package actionstest has helpers for tests of actions: a journal with a fake clock in which actions run, stop and
// continue; preflights with fixed answers; and the crash matrix.
//
// For its crash matrix, a capability defines the initial state of its world and a text that describes the outcome:
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
