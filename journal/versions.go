package journal

// The event type and version of each payload; the pairs never change.

const (
	version1 = 1
	version2 = 2
)

func (JournalCreated) eventType() Type   { return TypeJournalCreated }
func (JournalCreated) eventVersion() int { return version1 }

func (JournalSalvaged) eventType() Type   { return TypeJournalSalvaged }
func (JournalSalvaged) eventVersion() int { return version1 }

func (JournalOutdated) eventType() Type   { return TypeJournalOutdated }
func (JournalOutdated) eventVersion() int { return version1 }

func (JournalAdopted) eventType() Type   { return TypeJournalAdopted }
func (JournalAdopted) eventVersion() int { return version1 }

func (JournalReplaced) eventType() Type   { return TypeJournalReplaced }
func (JournalReplaced) eventVersion() int { return version1 }

func (JournalAccepted) eventType() Type   { return TypeJournalAccepted }
func (JournalAccepted) eventVersion() int { return version1 }

func (JournalExported) eventType() Type   { return TypeJournalExported }
func (JournalExported) eventVersion() int { return version1 }

func (JournalPruned) eventType() Type   { return TypeJournalPruned }
func (JournalPruned) eventVersion() int { return version1 }

func (JournalImported) eventType() Type   { return TypeJournalImported }
func (JournalImported) eventVersion() int { return version1 }

func (OperatorStarted) eventType() Type   { return TypeOperatorStarted }
func (OperatorStarted) eventVersion() int { return version1 }

func (OperatorStopped) eventType() Type   { return TypeOperatorStopped }
func (OperatorStopped) eventVersion() int { return version1 }

func (ClockJumped) eventType() Type   { return TypeClockJumped }
func (ClockJumped) eventVersion() int { return version1 }

func (APILost) eventType() Type   { return TypeAPILost }
func (APILost) eventVersion() int { return version1 }

func (APIRecovered) eventType() Type   { return TypeAPIRecovered }
func (APIRecovered) eventVersion() int { return version1 }

func (NodeObserved) eventType() Type   { return TypeNodeObserved }
func (NodeObserved) eventVersion() int { return version1 }

func (NodeGone) eventType() Type   { return TypeNodeGone }
func (NodeGone) eventVersion() int { return version1 }

func (PodTerminating) eventType() Type   { return TypePodTerminating }
func (PodTerminating) eventVersion() int { return version1 }

func (PodGone) eventType() Type   { return TypePodGone }
func (PodGone) eventVersion() int { return version1 }

func (NodeTraced) eventType() Type   { return TypeNodeTraced }
func (NodeTraced) eventVersion() int { return version1 }

func (ThingObserved) eventType() Type   { return TypeThingObserved }
func (ThingObserved) eventVersion() int { return version1 }

func (ThingGone) eventType() Type   { return TypeThingGone }
func (ThingGone) eventVersion() int { return version1 }

func (ThingTransitioned) eventType() Type   { return TypeThingTransitioned }
func (ThingTransitioned) eventVersion() int { return version1 }

func (NodeTransitioned) eventType() Type   { return TypeNodeTransitioned }
func (NodeTransitioned) eventVersion() int { return version1 }

func (PolicyRefused) eventType() Type   { return TypePolicyRefused }
func (PolicyRefused) eventVersion() int { return version1 }

func (PolicyLifted) eventType() Type   { return TypePolicyLifted }
func (PolicyLifted) eventVersion() int { return version1 }

func (PauseSet) eventType() Type   { return TypePauseSet }
func (PauseSet) eventVersion() int { return version1 }

func (PauseCleared) eventType() Type   { return TypePauseCleared }
func (PauseCleared) eventVersion() int { return version1 }

func (ActionRequested) eventType() Type { return TypeActionRequested }

// In version 1, the fields of the inputs of clear-node and purge-node were fields of the request itself.
func (ActionRequested) eventVersion() int { return version2 }

func (ActionRefused) eventType() Type   { return TypeActionRefused }
func (ActionRefused) eventVersion() int { return version1 }

func (ActionPlanned) eventType() Type   { return TypeActionPlanned }
func (ActionPlanned) eventVersion() int { return version1 }

func (ActionAdopted) eventType() Type { return TypeActionAdopted }

// The record in version 1 has an ActionRequested of version 1.
func (ActionAdopted) eventVersion() int { return version2 }

func (ActionWarned) eventType() Type   { return TypeActionWarned }
func (ActionWarned) eventVersion() int { return version1 }

func (ActionHeld) eventType() Type   { return TypeActionHeld }
func (ActionHeld) eventVersion() int { return version1 }

func (ActionReleased) eventType() Type   { return TypeActionReleased }
func (ActionReleased) eventVersion() int { return version1 }

func (ActionLeft) eventType() Type   { return TypeActionLeft }
func (ActionLeft) eventVersion() int { return version1 }

func (StepStarted) eventType() Type   { return TypeStepStarted }
func (StepStarted) eventVersion() int { return version1 }

func (StepNoted) eventType() Type   { return TypeStepNoted }
func (StepNoted) eventVersion() int { return version1 }

func (StepDone) eventType() Type   { return TypeStepDone }
func (StepDone) eventVersion() int { return version1 }

func (StepFailed) eventType() Type   { return TypeStepFailed }
func (StepFailed) eventVersion() int { return version1 }

func (ActionStalled) eventType() Type   { return TypeActionStalled }
func (ActionStalled) eventVersion() int { return version1 }

func (ActionRetried) eventType() Type   { return TypeActionRetried }
func (ActionRetried) eventVersion() int { return version1 }

func (ActionJoined) eventType() Type   { return TypeActionJoined }
func (ActionJoined) eventVersion() int { return version1 }

func (ActionCancelling) eventType() Type   { return TypeActionCancelling }
func (ActionCancelling) eventVersion() int { return version1 }

func (ActionEnded) eventType() Type   { return TypeActionEnded }
func (ActionEnded) eventVersion() int { return version1 }
