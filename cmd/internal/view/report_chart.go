package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// chartStates collects the states of things over time, and the actions on them.
type chartStates struct {
	options ReportOptions
	// from is the start of the chart. It is not before the journal's first event.
	from    time.Time
	lanes   map[laneKey]*laneStates
	actions map[string]*bar
}

// laneKey identifies a thing. It includes the UID, because another thing may have the same name.
type laneKey struct{ name, uid string }

// laneStates has the data of one thing's lane.
type laneStates struct {
	machine string
	spans   []span
	bars    []*bar
}

// span is a state with its start time.
type span struct {
	state journal.State
	from  time.Time
}

// isOpen is the outcome of an action that has not ended.
const isOpen = "open"

// bar is an action in the chart.
type bar struct {
	id, outcome string
	from, until time.Time
}

func newStates(options ReportOptions, first time.Time) *chartStates {
	return &chartStates{options: options, from: later(options.From, first), lanes: map[laneKey]*laneStates{}, actions: map[string]*bar{}}
}

func (s *chartStates) event(e journal.Decoded) {
	switch p := e.Body.(type) {
	case *journal.NodeTransitioned:
		s.entered(fsmnode.Machine, e, p.From, p.To)
	case *journal.ThingTransitioned:
		s.entered(p.Machine, e, p.From, p.To)
	default:
		s.handleAction(e)
	}
}

func (s *chartStates) entered(machine string, e journal.Decoded, from, to journal.State) {
	lane := s.lane(machine, e.Subject.Name, e.Subject.UID)
	if len(lane.spans) == 0 && from != "" {
		lane.spans = append(lane.spans, span{from, s.from})
	}
	lane.spans = append(lane.spans, span{to, e.Time})
}

// handleAction adds an action to the lane of its thing. Actions on the whole cluster have no lane.
func (s *chartStates) handleAction(e journal.Decoded) {
	if e.Action == "" || e.Subject.Name == "" {
		return
	}
	now := s.actions[e.Action]
	if now == nil {
		now = &bar{id: e.Action, outcome: isOpen, from: e.Time, until: s.options.Until}
		if _, begins := e.Body.(*journal.ActionRequested); !begins {
			now.from = s.from
		}
		s.actions[e.Action] = now
		lane := s.lane(strings.ToLower(e.Subject.Kind), e.Subject.Name, e.Subject.UID)
		lane.bars = append(lane.bars, now)
	}
	if ended, over := e.Body.(*journal.ActionEnded); over {
		now.until, now.outcome = e.Time, string(ended.Outcome)
	}
}

// lane returns the lane of a thing, and adds it with the machine's name if it is new.
func (s *chartStates) lane(machine, name, uid string) *laneStates {
	key := laneKey{name, uid}
	if s.lanes[key] == nil {
		s.lanes[key] = &laneStates{machine: machine}
	}
	return s.lanes[key]
}

// addPresent adds the things that did not change in the period, and the present states of open actions.
func (s *chartStates) addPresent(status api.Status) {
	for _, action := range status.Actions {
		if drawn := s.actions[action.ID]; drawn != nil && drawn.outcome == isOpen {
			drawn.outcome = string(action.Status) + ", " + planStep(action)
		}
	}
	add := func(machine, name, uid string, state journal.State, since time.Time, over bool) {
		known := s.lanes[laneKey{name, uid}] != nil
		if over && !known {
			return
		}
		lane := s.lane(machine, name, uid)
		if lane.machine = machine; len(lane.spans) == 0 {
			lane.spans = []span{{state, later(since, s.from)}}
		}
	}
	for _, node := range status.Nodes {
		add(fsmnode.Machine, node.Name, node.UID, node.State, node.Since, node.State == fsmnode.Purged || node.State == fsmnode.Gone)
	}
	for _, thing := range status.Things {
		add(thing.Machine, thing.Name, thing.UID, thing.State, thing.Since, thing.Gone)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// These are the sizes in the chart, in units of its view box.
const (
	laneHeight = 22
	laneFrom   = 220.0
	laneWidth  = 770.0
	chartTicks = 6
	axisHeight = 24
	// barBelow is the distance from the top of a lane to the bar of an action, which is under the label of the state.
	barBelow    = 14
	minBoxWidth = 1.5
	letterWidth = 7.0
	stampOfTick = "01-02 15:04"
	// timeOfTick is the format if ticks are less than a minute apart.
	timeOfTick = "15:04:05"
	// dateOfTick is the date format for a period of a year or more, for which month and day would be ambiguous.
	dateOfTick = "2006-01-02"
	aYear      = 365 * 24 * time.Hour
)

// chart has the data that the page draws.
type chart struct {
	Height, Bottom, AxisY int
	Ticks                 []chartTick
	Lanes                 []chartLane
	Legend                []chartState
}

type chartTick struct {
	X     float64
	Label string
	// Anchor says which part of the label is at X. The last label has another one, so that it does not exceed the
	// drawing.
	Anchor string
}

type chartLane struct {
	Name  string
	TextY int
	Spans []chartBox
	Bars  []chartBox
}

type chartBox struct {
	X, Width     float64
	Y            int
	Color, Title string
	// Label is the state, if the box has the space for it.
	Label string
}

type chartState struct{ State, Color string }

func (s *chartStates) chart() chart {
	var drawn chart
	colors := &palette{of: map[journal.State]string{}}
	keys := s.sorted()
	for i, key := range keys {
		lane, y := s.lanes[key], i*laneHeight
		row := chartLane{Name: Clean(lane.machine + " " + key.name), TextY: y + 15}
		for j, now := range lane.spans {
			until := s.options.Until
			if j+1 < len(lane.spans) {
				until = lane.spans[j+1].from
			}
			box := s.box(now.from, until, y+3, string(now.state))
			box.Color = colors.color(now.state)
			if state := Clean(string(now.state)); box.Width > letterWidth*float64(len(state)+1) {
				box.Label = state
			}
			row.Spans = append(row.Spans, box)
		}
		row.Spans = append(row.Spans, s.gapBoxes(lane, y+3, colors)...)
		for _, action := range lane.bars {
			row.Bars = append(row.Bars, s.box(action.from, action.until, y+barBelow, action.id+", "+action.outcome))
		}
		drawn.Lanes = append(drawn.Lanes, row)
	}
	drawn.Bottom = len(keys) * laneHeight
	drawn.Height, drawn.AxisY = drawn.Bottom+axisHeight, drawn.Bottom+axisHeight-8
	drawn.Ticks, drawn.Legend = s.ticks(), colors.legend
	return drawn
}

// gapBoxes returns boxes that cover the parts of a lane without events.
func (s *chartStates) gapBoxes(lane *laneStates, y int, colors *palette) (boxes []chartBox) {
	for _, lost := range s.options.Lost {
		if len(lane.spans) == 0 || !lane.spans[0].from.Before(lost.Until) {
			continue
		}
		box := s.box(later(lost.From, lane.spans[0].from), lost.Until, y, string(stateNotKnown))
		box.Color = colors.color(stateNotKnown)
		boxes = append(boxes, box)
	}
	return boxes
}

// stateNotKnown is the state of a thing in a period for which the journal lost its events.
const stateNotKnown journal.State = "not known"

// sorted returns the lanes, nodes first.
func (s *chartStates) sorted() []laneKey {
	var keys []laneKey
	for key := range s.lanes {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b laneKey) int {
		ma, mb := s.lanes[a].machine, s.lanes[b].machine
		if (ma == fsmnode.Machine) != (mb == fsmnode.Machine) {
			return map[bool]int{true: -1, false: 1}[ma == fsmnode.Machine]
		}
		return cmp.Or(cmp.Compare(ma, mb), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
	})
	return keys
}

// box returns the position of a period on a lane. It has a minimum width.
func (s *chartStates) box(from, until time.Time, y int, what string) chartBox {
	x := s.x(from)
	title := what + ": " + words.Stamp(from) + " to " + words.Stamp(until) + ", " + words.Span(until.Sub(from))
	return chartBox{X: x, Width: max(minBoxWidth, s.x(until)-x), Y: y, Title: Clean(title)}
}

// x returns the horizontal position of a time. The chart does not begin before the journal, because a young journal
// would fill only the chart's end.
func (s *chartStates) x(at time.Time) float64 {
	whole := s.options.Until.Sub(s.from)
	if whole <= 0 {
		return laneFrom
	}
	part := float64(at.Sub(s.from)) / float64(whole)
	return laneFrom + laneWidth*min(max(part, 0), 1)
}

func (s *chartStates) ticks() (ticks []chartTick) {
	whole, form := s.options.Until.Sub(s.from), stampOfTick
	step := whole / (chartTicks - 1)
	switch {
	case whole >= aYear:
		form = dateOfTick
	case step < time.Minute:
		form = timeOfTick
	}
	for i := range chartTicks {
		at := s.from.Add(time.Duration(i) * step)
		ticks = append(ticks, chartTick{X: s.x(at), Label: at.UTC().Format(form), Anchor: "middle"})
	}
	ticks[len(ticks)-1].Anchor = "end"
	return slices.CompactFunc(ticks, func(a, b chartTick) bool { return a.Label == b.Label })
}

// palette assigns colours to states. States of nodes always have the same colours.
type palette struct {
	of     map[journal.State]string
	next   int
	legend []chartState
}

var (
	nodeColors = map[journal.State]string{
		fsmnode.Healthy: "#4caf50", fsmnode.Unknown: "#e53935", fsmnode.Clearing: "#fb8c00", fsmnode.Cleared: "#fdd835",
		fsmnode.Purging: "#8e24aa", fsmnode.Purged: "#9e9e9e", fsmnode.Gone: "#cfd8dc", stateNotKnown: "#90caf9",
	}
	otherColors = []string{"#1e88e5", "#00897b", "#6d4c41", "#7cb342", "#d81b60", "#5e35b1", "#f4511e", "#546e7a"}
)

func (p *palette) color(state journal.State) string {
	if known, is := p.of[state]; is {
		return known
	}
	color, ofNode := nodeColors[state]
	if !ofNode {
		color = otherColors[p.next%len(otherColors)]
		p.next++
	}
	p.of[state] = color
	p.legend = append(p.legend, chartState{Clean(string(state)), color})
	return color
}
