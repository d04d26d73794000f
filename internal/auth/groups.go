package auth

import (
	"context"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ident"
)

// Groups lists all groups with their members.
func (s *Service) Groups(ctx context.Context, by Principal) ([]Group, error) {
	if err := need(by, GroupManage); err != nil {
		return nil, err
	}
	return s.store.ListGroups(ctx)
}

// AddGroup adds an empty group.
func (s *Service) AddGroup(ctx context.Context, by Principal, name string) (Group, error) {
	if err := need(by, GroupManage); err != nil {
		return Group{}, err
	}
	if err := checkName(name, "g_"); err != nil {
		return Group{}, err
	}
	g := Group{ID: ident.New("g"), Name: name, Members: []string{}, CreatedAt: s.now()}
	if err := s.store.InsertGroup(ctx, g); err != nil {
		return Group{}, err
	}
	s.groupChanged(g.Name)
	return g, nil
}

// RemoveGroup removes a group; its members stay users.
func (s *Service) RemoveGroup(ctx context.Context, by Principal, name string) error {
	return s.changeGroup(by, name, func() error { return s.store.DeleteGroup(ctx, name) })
}

// AddMember puts a user into a group; once more is no error.
func (s *Service) AddMember(ctx context.Context, by Principal, group, user string) error {
	return s.changeGroup(by, group, func() error { return s.store.AddGroupMember(ctx, group, user) })
}

// RemoveMember takes a user out of a group; once more is no error.
func (s *Service) RemoveMember(ctx context.Context, by Principal, group, user string) error {
	return s.changeGroup(by, group, func() error { return s.store.RemoveGroupMember(ctx, group, user) })
}

func (s *Service) changeGroup(by Principal, name string, change func() error) error {
	if err := need(by, GroupManage); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	s.groupChanged(name)
	return nil
}

// groupChanged tells admins, who alone see groups. Groups are addressed by
// their names.
func (s *Service) groupChanged(name string) {
	s.hub.Publish(events.Change{Type: "group", ID: name, Owner: events.Admins})
}
