// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// policy writes down who asked for what, once it is answered.
const policy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// audited are options of a plane that keeps an audit log in the file that is returned.
func audited(t *testing.T, name string) (options plane.Options, log string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600))
	log = filepath.Join(dir, "audit.log")
	return plane.Options{Name: name, APIServerFlags: []string{
		"--audit-policy-file=" + filepath.Join(dir, "policy.yaml"), "--audit-log-path=" + log,
	}}, log
}

// event is as much of a line of an audit log as is looked at.
type event struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Response  struct{ Code int } `json:"responseStatus"`
}

// right is one that a role grants, in words.
func right(verb, group, resource, subresource string) string {
	if subresource != "" {
		resource += "/" + subresource
	}
	if group != "" {
		resource += "." + group
	}
	return verb + " " + resource
}

// used are the rights that a user used, and what was refused.
func used(t *testing.T, log, user string) (rights map[string]bool, refused []string) {
	t.Helper()
	file, err := os.Open(log)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	rights = map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != user || e.ObjectRef == nil {
			continue // the last line may not be whole yet; what is no resource is everybody's
		}
		name := right(e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)
		if e.Response.Code == 403 {
			refused = append(refused, fmt.Sprintf("%s %s/%s", name, e.ObjectRef.Namespace, e.ObjectRef.Name))
			continue
		}
		rights[name] = true
		if e.Verb == "patch" && e.Response.Code == 201 {
			// Who applies what is not there needs the right to create it.
			rights[right("create", e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)] = true
		}
	}
	require.NoError(t, lines.Err())
	return rights, refused
}

// granted are the rights that roles grant, each with the roles that do.
func granted(roles ...*rbacv1.ClusterRole) map[string][]string {
	rights := map[string][]string{}
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					plain, sub, _ := strings.Cut(resource, "/")
					name := right(verb, rule.APIGroups[0], plain, sub)
					rights[name] = append(rights[name], role.Name)
				}
			}
		}
	}
	return rights
}
