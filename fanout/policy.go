// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AdmissionPolicy returns a ValidatingAdmissionPolicy and its binding, of
// admissionregistration.k8s.io/v1, for a kind that keeps its claims in an annotation. They protect
// the claims as the CEL rules of a CRD do: a claim cannot be changed or dropped and has the form
// in which coordinators write it, a stage never goes back, an object is created Reserved, and a
// Reserved object keeps its content, except a guard whose payload a sweep removes. Apply both in
// every peer, which takes the right to write these two kinds. For a kind that keeps its claim in
// its spec, whose CRD protects it (v1alpha1.Schema), AdmissionPolicy returns nil.
//
// The policy ignores objects without the annotation. It rejects mistakes, also those of an old
// or broken coordinator; it does not restrict who may write, and does not see deletions. The
// caller may modify the returned objects. AdmissionPolicy is pure.
func AdmissionPolicy(k Kind) []*unstructured.Unstructured {
	if k.Claim.annotation == "" {
		return nil
	}
	name := k.Resource.GroupResource().String() + ".claims.fanout.atoll.dev"
	p := policyOf(k)
	return []*unstructured.Unstructured{
		admission("ValidatingAdmissionPolicy", name, map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{
				"matchPolicy": "Equivalent",
				"resourceRules": []any{map[string]any{
					"apiGroups":   []any{k.Resource.Group},
					"apiVersions": []any{k.Resource.Version},
					"operations":  []any{"CREATE", "UPDATE"},
					"resources":   []any{k.Resource.Resource, k.Resource.Resource + "/status"},
				}},
			},
			"matchConditions": []any{map[string]any{
				"name":       "claimed",
				"expression": fmt.Sprintf("%s != '' || %s != ''", p.annotation("object"), p.annotation("oldObject")),
			}},
			"variables":   p.variables(),
			"validations": p.validations(),
		}),
		admission("ValidatingAdmissionPolicyBinding", name, map[string]any{
			"policyName":        name,
			"validationActions": []any{"Deny"},
		}),
	}
}

func admission(kind, name string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetAPIVersion("admissionregistration.k8s.io/v1")
	obj.SetKind(kind)
	obj.SetName(name)
	return obj
}

// policy writes CEL about one annotation. CEL cannot parse JSON, so a claim must have the one
// form that coordinators write, and the expressions cut its parts out of this form. Inside a
// string each quote follows a backslash, so a quoted name before a colon is always a field.
type policy struct {
	key    string
	stages []string
	scrub  string // CEL condition under which a guard may lose its payload
}

func policyOf(k Kind) policy {
	if k.Mode == Everywhere {
		return policy{key: k.Claim.annotation, stages: []string{"Reserved", "Active", "Removing"}, scrub: "false"}
	}
	return policy{
		key: k.Claim.annotation, stages: []string{"Reserved", "Configured", "Decided", "Removing"},
		// A write may replace a guard's payload by the content of a guard, if it changes
		// guardAnnotation.
		scrub: `(variables.newClaim.contains('"role":"Secondary"') && variables.newMark != '' && variables.newMark != variables.oldMark)`,
	}
}

// Parts of regular expressions.
const (
	quoted = `"([^"\\]|\\.)*"`
	flat   = `\{([^"{}]|` + quoted + `)*\}`
	nested = `\{([^"{}]|` + quoted + `|` + flat + `)*\}`
	list   = `\[([^"\[\]]|` + quoted + `)*\]`
)

// form returns the regular expression of a claim as coordinators write it.
func (p policy) form() string {
	return `^\{"claim":` + nested +
		`,"stage":"(` + strings.Join(p.stages, "|") + `)"` +
		`(,"bound":` + flat + `)?(,"heartbeat":[0-9]+)?(,"removal":` + flat + `)?(,"revision":` + flat + `)?(,"history":` + list + `)?(,"home":` + flat + `)?\}$`
}

// annotation returns the CEL expression for the claim's text in an object. The text is empty if
// the object has no claim.
func (p policy) annotation(object string) string { return annotation(object, p.key) }

func annotation(object, key string) string {
	text := fmt.Sprintf("%s.metadata.?annotations[?'%s'].orValue('')", object, key)
	if object == "oldObject" {
		return "(oldObject == null ? '' : " + text + ")"
	}
	return text
}

func (p policy) variables() []any {
	var all []any
	add := func(name, expression string) {
		all = append(all, map[string]any{"name": name, "expression": expression})
	}
	for _, side := range []struct{ prefix, object string }{{"new", "object"}, {"old", "oldObject"}} {
		text := "variables." + side.prefix + "Text"
		add(side.prefix+"Text", p.annotation(side.object))
		add(side.prefix+"Mark", annotation(side.object, guardAnnotation))
		add(side.prefix+"Claim", fmt.Sprintf(`%s.split(',"stage":"')[0]`, text))
		add(side.prefix+"Stage", fmt.Sprintf(`%[1]s.contains(',"stage":"') ? %[1]s.split(',"stage":"')[1].split('"')[0] : ''`, text))
		add(side.prefix+"Heartbeat", number(text, "heartbeat", "0"))
		for _, part := range []string{"bound", "removal", "revision", "home"} {
			add(side.prefix+strings.ToUpper(part[:1])+part[1:], fmt.Sprintf(`%s.find(r',"%s":%s')`, text, part, flat))
		}
		add(side.prefix+"Number", number("variables."+side.prefix+"Revision", "number", "-1"))
		add(side.prefix+"Term", number("variables."+side.prefix+"Home", "term", "0"))
		add(side.prefix+"HomePeer", fmt.Sprintf(`variables.%sHome.find(r'"peer":%s')`, side.prefix, quoted))
		add(side.prefix+"HomeUID", fmt.Sprintf(`variables.%sHome.find(r'"uid":%s')`, side.prefix, quoted))
	}
	// sameContent is true if the write changes only metadata and status.
	add("sameContent", `oldObject == null || (dyn(object).all(k, k in ['metadata', 'status'] || (k in dyn(oldObject) && dyn(object)[k] == dyn(oldObject)[k])) && `+
		`dyn(oldObject).all(k, k in ['metadata', 'status'] || k in dyn(object)))`)
	add("holder", fmt.Sprintf(`'the name is held for ' + variables.oldText.find(r'"target":%[1]s') + ' by ' + variables.oldText.find(r'"operation":%[1]s') + ' since ' + variables.oldText.find(r'"start":%[1]s')`, quoted))
	return all
}

// number returns the CEL expression for the integer of the field name in a text, or for the value
// of the parameter none if the text does not have the field.
func number(text, name, none string) string {
	return fmt.Sprintf(`%[1]s.contains('"%[2]s":') ? int(%[1]s.split('"%[2]s":')[1].find('^[0-9]+')) : %[3]s`, text, name, none)
}

func (p policy) validations() []any {
	var all []any
	add := func(expression, message string) {
		all = append(all, map[string]any{"expression": expression, "message": message, "reason": "Invalid"})
	}
	explained := func(expression, message string) {
		all = append(all, map[string]any{
			"expression": expression, "message": message, "reason": "Invalid",
			"messageExpression": "'" + message + ": ' + variables.holder",
		})
	}
	once := `['"claim":', '"stage":', '"bound":', '"heartbeat":', '"removal":', '"revision":', '"history":', '"home":'].all(f, variables.newText.split(f).size() <= 2)`
	add(fmt.Sprintf(`variables.newText == '' || (variables.newText.matches(r'%s') && %s)`, p.form(), once),
		"annotation "+p.key+" is not a claim as a coordinator writes it: leave it out of an object that you apply, a coordinator adds it")
	explained(`variables.oldText == '' || variables.newText != ''`,
		"claim cannot be removed: keep annotation "+p.key+" as it is; to give the name up, remove the object through a coordinator")
	explained(`variables.oldText == '' || variables.newText == '' || variables.newClaim == variables.oldClaim`,
		"claim cannot be changed: remove the object from all peers and create it again")
	add(`oldObject != null || variables.newText == '' || variables.newStage == 'Reserved'`,
		"an object is created Reserved or without a claim: leave annotation "+p.key+" out, a coordinator adds it")
	add(`oldObject == null || variables.oldText != '' || variables.newText == '' || (variables.newClaim.contains('"role":"Primary"') && variables.newStage in ['Configured', 'Active'])`,
		"an object that was applied without a claim is adopted as a committed Primary at once, never as a reservation: adopt it through a coordinator")
	add(`variables.oldStage == '' || variables.newStage == '' || variables.newStage == variables.oldStage || variables.oldStage == 'Reserved' || (variables.oldStage != 'Removing' && variables.newStage == 'Removing')`,
		"stage cannot go back: it goes from Reserved to "+strings.Join(p.stages[1:len(p.stages)-1], " or ")+", and from there to Removing")
	add(`variables.newText == '' || (variables.newBound == '' ? variables.oldBound == '' : variables.newClaim.contains('"role":"Secondary"') && (variables.newClaim.contains(',"record":"') || variables.newClaim.contains(',"primary":' + variables.newBound.split(',"bound":')[1])) && (variables.oldBound == '' || variables.newBound == variables.oldBound))`,
		"bound is set once, on a Secondary, to the primary that its claim names if it names one")
	add(`variables.newText == '' || variables.newHeartbeat >= variables.oldHeartbeat`,
		"heartbeat cannot fall: write the value that was read, or one more")
	add(`variables.newText == '' || (variables.newRemoval != '') == (variables.newStage == 'Removing')`,
		"removal goes with stage Removing: set both in one write, or neither")
	add(`variables.newText == '' || variables.oldRemoval == '' || variables.newRemoval == variables.oldRemoval`,
		"removal cannot be changed: it is under way already; join it instead of starting another")
	add(`variables.newText == '' || variables.newNumber >= variables.oldNumber`,
		"revision.number cannot fall: read the object again and write the next number")
	add(`variables.newText == '' || variables.newNumber != variables.oldNumber || variables.newRevision == variables.oldRevision`,
		"revision cannot be changed under the same number: another content needs the next number")
	add(`variables.newText == '' || variables.newTerm >= variables.oldTerm`,
		"home.term cannot fall: read the object again, its home has moved on")
	add(`variables.newText == '' || variables.newTerm != variables.oldTerm || (variables.newHomePeer == variables.oldHomePeer && (variables.oldHomeUID == '' || variables.newHomeUID == variables.oldHomeUID))`,
		"home cannot be changed within a term: a move needs the next term")
	add(`!(variables.newStage == 'Reserved' && variables.oldStage == 'Reserved') || variables.sameContent || `+p.scrub,
		"content cannot be changed while the object is Reserved: wait until it is committed")
	return all
}
