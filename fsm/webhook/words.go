package webhook

import (
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for the webhooks and the action that configures them.
var Words = words.Component{
	Name:    Machine,
	Actions: []words.Action{{Kind: journal.ActionConfigureWebhooks, Verb: "configure", Noun: "webhooks"}},
	Rows: []words.Row{
		words.Noted(journal.Webhooks.Kind, "the webhooks", "Webhook"),
		words.Observed(journal.Webhooks.Kind, observed),
		words.Gone(journal.Webhooks.Kind),
	},
}

func observed(facts journal.WebhookFacts) string {
	served := "is not served"
	if facts.Serving != "" {
		served = "is served"
	}
	return served + ", with " + words.Count(len(facts.Configurations), "registration")
}
