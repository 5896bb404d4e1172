package actions

import "slices"

// urgent reports whether a step of the batch was interrupted where it must not stay.
func (a *run) urgent(g *group, batch []*stepState) bool {
	return g.urgent && !a.record.Request.DryRun && slices.ContainsFunc(batch, func(s *stepState) bool {
		code, is := s.code.(UrgentStep)
		return is && startedBefore(a.progress(s)) && code.Urgent(a.contextOf(s.planned))
	})
}
