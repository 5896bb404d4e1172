package journal

// Decoded is an event with its decoded payload. Several goroutines share it, so it must not be changed.
type Decoded struct {
	Event
	// Body is the payload; nil if Err says why it cannot be read. See [Event.Decode].
	Body Payload
	Err  error
}

// Decoded decodes the payload.
func (e Event) Decoded() Decoded {
	body, err := e.Decode()
	return Decoded{Event: e, Body: body, Err: err}
}
