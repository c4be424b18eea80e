// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed fanout_schema.json
var fanoutSchema []byte

// Schema returns the OpenAPI schema of the field spec.fanout, CEL rules included, and the
// rules that must be at spec itself. Add them to the CRD of your own kind:
//
//   - set properties.fanout of spec's schema to field;
//   - append specRules to x-kubernetes-validations of spec's schema;
//   - give spec the default {}, or make it required, so that the rules are evaluated when
//     a client leaves spec out.
//
// With controller-gen, a field of type *Fanout with the JSON name fanout gives the schema of the field;
// specRules become XValidation markers of the type of spec. examples/operator/v1 shows both, and a
// test that compares them with Schema.
//
// A guard has no payload, so no other field of spec may be required (unless fanout.Kind.Guard fills
// it in) or have a default.
//
// Rules about the payload (immutable while Reserved, none on a guard) depend on the fields
// of the kind, so the author of the kind adds them. The caller may change the returned
// values. The error means that the embedded schema is damaged.
func Schema() (field map[string]any, specRules []map[string]any, err error) {
	if err := json.Unmarshal(fanoutSchema, &field); err != nil {
		return nil, nil, fmt.Errorf("embedded schema of spec.fanout: %w", err)
	}
	return field, []map[string]any{
		{
			"rule":    "!has(oldSelf.fanout) || has(self.fanout)",
			"message": "claim cannot be removed: use apply instead of replace, or keep spec.fanout as it is; to give the name up, delete the object and let a coordinator clear all peers",
		},
		{
			"rule":            "oldSelf.hasValue() || self.?fanout.stage.orValue('Reserved') == 'Reserved'",
			"message":         "an object is created Reserved or without spec.fanout: leave spec.fanout out, a coordinator adopts the object",
			"optionalOldSelf": true,
		},
		{
			"rule":    "has(oldSelf.fanout) || !has(self.fanout) || (self.fanout.?claim.role.orValue('None') == 'Primary' && self.fanout.?stage.orValue('None') in ['Configured', 'Active'])",
			"message": "an object that was applied without a claim is adopted as a committed Primary at once, never as a reservation: adopt it through a coordinator",
		},
	}, nil
}
