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

// policy makes the API server log the user and the resource of each request, once it is answered.
const policy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// audited returns options of a plane with an audit log, and the path of the log.
func audited(t *testing.T, name string) (options plane.Options, log string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600))
	log = filepath.Join(dir, "audit.log")
	return plane.Options{Name: name, APIServerFlags: []string{
		"--audit-policy-file=" + filepath.Join(dir, "policy.yaml"), "--audit-log-path=" + log,
	}}, log
}

// event is the part of an audit log line that the test uses.
type event struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Response  struct{ Code int } `json:"responseStatus"`
}

// right describes a right that a role can grant.
func right(verb, group, resource, subresource string) string {
	if subresource != "" {
		resource += "/" + subresource
	}
	if group != "" {
		resource += "." + group
	}
	return verb + " " + resource
}

// used returns the rights that a user used, and the user's refused requests.
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
			continue // skip an incomplete last line, other users, and paths that are no resource
		}
		name := right(e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)
		if e.Response.Code == 403 {
			refused = append(refused, fmt.Sprintf("%s %s/%s", name, e.ObjectRef.Namespace, e.ObjectRef.Name))
			continue
		}
		rights[name] = true
		if e.Verb == "patch" && e.Response.Code == 201 {
			// An apply that creates the object also needs the right to create it.
			rights[right("create", e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)] = true
		}
	}
	require.NoError(t, lines.Err())
	return rights, refused
}

// granted returns the rights that roles grant, each with the names of the granting roles.
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
