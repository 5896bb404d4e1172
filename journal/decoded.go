package journal

// Decoded is an event that was read once, for all who look at it: what it says
// is shared, and nobody may change it.
type Decoded struct {
	Event
	// Body is the typed payload; nil when Err says why it cannot be read. See
	// [Event.Decode].
	Body Payload
	Err  error
}

// Decoded reads the event's payload.
func (e Event) Decoded() Decoded {
	body, err := e.Decode()
	return Decoded{Event: e, Body: body, Err: err}
}
