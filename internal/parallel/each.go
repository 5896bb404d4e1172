package parallel

// Each calls f for every item, at most limit at the same time, waits for all, and then panics with a
// *[PanicError] if any of them did.
func Each[I any](limit int, items []I, f func(I)) {
	var all Group
	places := make(chan struct{}, limit)
	for _, item := range items {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			f(item)
		})
	}
	all.Wait().Raise()
}
