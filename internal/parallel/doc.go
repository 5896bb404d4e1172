// Package parallel runs functions at the same time and hands a panic of any of
// them to whoever waits for it. A panic in a goroutine that nobody recovers ends
// the process, so one defect, met while one object is looked at, would end
// everything else that EKCO does, at each start anew.
package parallel
