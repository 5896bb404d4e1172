// Package actionstest is what tests of actions share: a journal and a clock that
// runs at once, in which actions run, are stopped and go on; preflights that answer
// as they are told; and the crash matrix.
//
// A capability has its crash matrix when it says how its world begins and what it
// has come to:
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
