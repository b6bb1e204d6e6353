//! One test suite that every database passes, for this crate and for other implementations.
//!
//! Each test is an async function of a [`Fresh`] store. [`conformance_tests!`](crate::conformance_tests) generates
//! the `#[test]`s. Nothing sleeps: the tests set the time, except the database's own clock, which is only compared
//! with itself.

pub mod agenda;
pub mod alerts;
pub mod apps;
pub mod backfills;
pub mod batches;
mod bench;
pub mod calendars;
pub mod claims;
pub mod control;
pub mod crashes;
pub mod crowds;
pub mod declarations;
pub mod dependencies;
pub mod endings;
pub mod history;
pub mod nodes;
pub mod places;
pub mod records;
pub mod resume;
pub mod servers;
pub mod traces;
pub mod users;
pub mod views;
pub mod workflows;

use std::sync::Arc;

use engine::{JobId, JobSpec, StoreError};
use futures_util::future::BoxFuture;
use timer::Timestamp;

use crate::database::Database;
pub use crate::faults::{Faults, InjectedFault};

/// A store on an empty database without other users.
pub struct Fresh {
    store: Arc<Database>,
    faults: Arc<Faults>,
    seed: Seed,
}

/// Adds this many started jobs of one definition with this first fire.
type Seed = Arc<
    dyn Fn(JobSpec, usize, Timestamp) -> BoxFuture<'static, Result<Vec<JobId>, StoreError>> + Send + Sync,
>;

impl From<Database> for Fresh {
    fn from(store: Database) -> Self {
        let store = Arc::new(store);
        let faults = store.faults();
        let seeded = store.clone();
        let seed = move |spec: JobSpec, count, next| {
            let store = seeded.clone();
            let added: BoxFuture<'static, _> =
                Box::pin(async move { store.add_started_jobs(&spec, count, next).await });
            added
        };
        Fresh { store, faults, seed: Arc::new(seed) }
    }
}

/// Generates a test for each function of the suite. `$fresh` is an async function that returns `Option<Fresh>`:
/// `None` skips the test, after printing why.
#[macro_export]
macro_rules! conformance_tests {
    ($fresh:path) => {
        $crate::conformance_tests! { $fresh =>
            nodes::a_new_life_has_a_higher_epoch_and_ends_the_one_before
            nodes::only_a_life_whose_lease_has_ended_can_be_declared_over
            nodes::a_life_that_is_over_can_neither_claim_nor_extend_its_lease
            nodes::only_lives_that_depend_on_a_broken_lifeline_are_declared_over
            nodes::a_heartbeat_finds_that_commits_are_lost
            nodes::a_node_that_leaves_hands_its_runs_back
            nodes::runs_of_a_dead_life_are_found_with_its_lease
            history::the_runs_that_the_database_has_are_known
            history::ids_that_may_have_been_given_are_not_given_again
            history::each_alert_about_lost_commits_stands_alone
            agenda::the_agenda_has_the_earliest_time_of_each_kind_of_work
            agenda::the_agenda_has_runs_of_fenced_nodes
            claims::a_claim_moves_the_job_and_opens_its_run
            claims::a_claim_takes_the_earliest_first_and_says_if_there_are_more
            claims::a_node_takes_its_slots_first_and_what_others_leave_lying
            claims::instants_that_are_not_sent_are_recorded
            claims::a_job_that_is_over_is_stopped
            claims::a_broadcast_opens_a_run_for_each_target
            claims::a_waiting_run_is_split_when_it_is_claimed
            claims::a_waiting_run_can_be_left_or_blocked
            claims::a_run_moves_only_from_the_version_that_was_seen
            claims::a_run_handed_back_is_claimed_by_another_and_the_first_is_refused
            claims::running_runs_are_looked_at_when_their_time_comes
            endings::the_first_ending_wins
            endings::every_outcome_is_in_the_log
            endings::a_fire_that_is_skipped_while_it_is_claimed_is_no_failure
            endings::a_run_keeps_its_address_whatever_is_written_first
            endings::an_ending_that_names_an_older_version_changes_nothing
            endings::a_requested_cancellation_is_kept_and_makes_a_failure_a_cancellation
            endings::a_failed_run_is_tried_again_and_the_last_failure_raises_an_alert
            endings::children_run_once_when_the_parent_succeeds
            endings::a_child_beyond_the_quota_is_recorded_and_a_retry_is_not_limited
            endings::children_of_a_broadcast_run_once_or_for_each_shard
            endings::a_broadcast_with_a_failed_shard_opens_no_children
            endings::a_lost_run_gives_way_to_one_late_result
            endings::a_late_result_knows_how_deep_and_why_its_run_was
            endings::a_late_shard_completes_the_broadcast
            endings::a_late_success_takes_back_the_retry
            endings::a_fixed_delay_counts_from_the_end_of_the_run
            endings::a_fixed_delay_that_is_not_valid_any_more_stops
            endings::a_fixed_delay_goes_on_after_a_run_that_was_never_sent
            endings::an_ending_of_a_run_whose_job_is_gone_is_recorded
            endings::alerts_are_leased_until_they_are_forgotten
            endings::people_are_told_of_what_did_not_run_and_of_what_began_late
            alerts::an_alert_is_seen_from_its_beginning_until_it_is_old
            alerts::what_goes_on_joins_the_alert_and_is_told_less_and_less_often
            alerts::alerts_are_found_by_app_job_kind_state_and_time
            traces::a_trace_comes_back_as_each_node_knows_it
            traces::a_trace_goes_with_its_run
            places::runs_that_may_not_overlap_are_blocked
            places::runs_wait_for_the_one_place_and_the_oldest_goes_first
            places::a_later_fire_takes_the_place_of_a_running_one
            places::a_replaced_run_has_its_real_result
            places::a_later_fire_waits_for_the_answer_about_an_unsent_one
            places::an_attempt_of_a_broadcast_is_not_kept_out_by_its_own_fire
            calendars::a_calendar_comes_back_as_it_was_saved
            calendars::a_job_is_planned_again_when_its_calendar_changes
            calendars::a_calendar_that_a_job_uses_stays
            calendars::fires_are_counted_up_to_the_maximum
            workflows::steps_follow_one_another_and_a_join_waits_for_all
            workflows::a_grid_has_the_states_of_the_last_runs
            workflows::a_step_gets_the_outputs_and_inputs_that_it_names
            workflows::a_failed_step_stops_the_run_and_its_handlers_follow
            workflows::a_cancelled_workflow_ends_its_steps_wherever_they_are
            workflows::a_paused_workflow_opens_nothing_until_it_goes_on
            workflows::waits_approvals_and_timeouts_end_in_time
            workflows::a_workflow_that_takes_too_long_is_timed_out
            workflows::a_step_that_is_a_workflow_ends_with_it
            workflows::a_step_of_a_deleted_job_fails_and_an_exclusive_one_waits
            workflows::a_workflow_cut_anywhere_goes_on_as_if_nothing_had_happened
            workflows::each_saved_definition_is_a_version
            dependencies::a_step_waits_for_the_newest_run_of_the_date
            dependencies::a_run_that_ended_before_counts_unless_a_newer_one_failed
            dependencies::a_step_that_waits_too_long_or_for_a_deleted_job_fails
            dependencies::a_missing_run_of_the_schedule_is_started_once
            dependencies::days_of_a_schedule_need_each_of_its_times
            dependencies::a_dependency_cut_anywhere_misses_no_end
            dependencies::an_end_at_the_same_moment_as_the_look_is_seen
            workflows::definitions_and_jobs_of_steps_are_pruned_once_nothing_needs_them
            workflows::a_workflow_keeps_its_definition_and_its_schedule_is_hidden_from_java_admins
            resume::a_resumed_run_keeps_what_succeeded_and_runs_the_rest
            resume::a_failed_step_can_be_set_and_an_approval_is_kept
            resume::what_cannot_be_resumed_says_why
            resume::a_step_that_was_changed_meanwhile_runs_again
            resume::a_retry_goes_on_at_the_failed_step_or_from_the_start
            resume::a_resumption_cut_anywhere_is_whole_or_none
            resume::of_resumptions_at_once_one_counts
            workflows::a_step_that_was_given_up_and_succeeds_late_goes_on
            backfills::a_backfill_runs_each_time_once_in_its_order_and_keeps_its_window
            backfills::times_with_runs_are_left_out_waited_for_or_repeated
            backfills::a_failure_leaves_nothing_out_and_failed_times_can_be_retried
            backfills::a_failure_stops_a_backfill_that_asks_for_it_after_all_retries
            backfills::a_paused_backfill_opens_nothing_and_a_cancelled_one_never_again
            backfills::a_backfill_of_a_job_that_may_not_overlap_opens_one_run_and_blocks_no_fire
            backfills::a_backfill_of_a_broadcast_ends_with_the_last_shard
            backfills::a_backfill_is_cancelled_with_its_job
            backfills::a_run_that_was_given_up_and_succeeds_late_counts_once
            backfills::a_backfill_is_refused_if_it_has_too_many_times_or_places
            backfills::a_backfill_cut_anywhere_goes_on_as_if_nothing_had_happened
            backfills::nodes_that_advance_at_once_keep_the_window
            backfills::an_old_backfill_is_pruned_when_it_has_ended
            control::a_job_comes_back_as_it_was_written
            control::a_script_is_kept_as_it_was_written
            control::a_started_job_fires_first_after_now
            control::a_job_without_an_instant_left_cannot_be_started
            control::a_stop_cancels_what_nobody_has_sent
            control::a_stop_withdraws_many_runs_some_at_a_time
            control::no_operation_on_a_job_writes_more_rows_at_once_than_a_step
            control::fires_are_claimed_when_they_are_due_while_many_are_claimed_ahead
            control::a_job_is_not_started_again_before_its_stop_is_finished
            control::a_withdrawn_run_is_no_failure
            control::open_runs_are_counted_for_each_app
            control::an_edit_cancels_the_old_instants_and_plans_the_new_ones
            control::an_edit_of_an_older_revision_is_refused
            control::a_job_is_put_with_all_that_belongs_to_it_or_not_at_all
            control::a_definition_and_its_script_are_put_together_or_not_at_all
            control::a_deleted_job_is_gone_and_its_runs_are_cancelled
            control::an_answer_that_comes_too_late_moves_the_job_past_the_instant
            control::a_report_about_a_run_that_was_to_be_cancelled_moves_the_job_past_it
            control::a_fire_before_one_that_was_sent_all_the_same_is_opened_again
            control::a_job_is_not_started_before_its_nodes_have_released_earlier_fires
            control::a_run_that_ends_while_it_is_taken_back_keeps_its_address
            control::a_key_names_one_job
            control::a_job_that_does_not_exist_cannot_be_controlled
            control::a_trigger_asked_for_twice_opens_one_run
            control::texts_come_back_as_they_were_or_are_refused
            batches::many_jobs_are_changed_together_each_as_if_alone
            batches::a_rejected_change_leaves_the_others_unless_all_or_none_are_wanted
            batches::a_batch_adds_children_together_with_their_parents
            batches::stops_of_many_jobs_withdraw_some_runs_at_a_time
            declarations::a_declared_job_is_added_once_and_started
            declarations::what_people_change_stays_and_the_rest_follows_the_program
            declarations::a_job_that_people_made_is_taken_for_the_declared_one_and_stays_theirs
            declarations::a_declared_job_that_was_moved_is_left_alone_and_a_deleted_one_comes_back
            declarations::programs_that_declare_at_once_have_one_job
            declarations::a_declaration_cut_anywhere_leaves_all_or_nothing
            declarations::the_handlers_of_an_executor_are_known_while_it_is_there
            records::jobs_and_runs_are_read_page_by_page
            records::what_is_old_is_pruned_and_what_is_open_stays
            records::runs_beyond_so_many_are_pruned_and_what_is_open_stays
            records::nothing_to_adopt_changes_nothing
            apps::an_app_comes_back_as_it_was_written
            apps::a_name_belongs_to_one_app_and_has_to_fit
            apps::an_app_is_deleted_with_all_that_is_its_own_unless_jobs_use_it
            apps::an_app_that_gets_a_job_just_now_is_not_deleted
            apps::an_app_that_is_made_where_it_is_missing_is_news
            apps::an_executor_is_new_once_and_its_beats_change_nothing_else
            apps::an_executor_that_was_believed_to_be_gone_is_news
            apps::the_token_of_an_executor_is_the_one_it_last_registered_with
            apps::an_app_has_a_bounded_number_of_addresses
            apps::apps_that_do_not_exist_share_one_bound_of_addresses
            apps::executors_that_are_silent_are_left_out_and_then_forgotten
            apps::executors_that_register_at_two_nodes_at_once_are_there_once
            apps::addresses_are_published_where_they_differ
            apps::tokens_are_added_and_expire
            apps::of_settings_made_at_once_one_stands
            views::jobs_are_found_by_what_people_remember
            views::jobs_are_listed_in_every_order_from_where_a_page_ended
            views::a_job_is_found_by_its_tags_while_it_is_there
            views::what_was_not_sent_is_looked_through_from_the_newest
            views::runs_are_counted_by_what_came_of_them
            views::runs_are_found_by_app_job_status_and_time
            views::a_rare_run_is_found_far_behind_the_newest
            views::runs_are_turned_page_by_page_in_every_order
            views::a_run_shows_all_that_is_known_of_it
            views::cleared_runs_are_gone_with_their_logs_and_open_ones_stay
            views::a_report_counts_the_runs_of_each_day
            views::two_nodes_report_a_day_once
            views::a_script_is_kept_in_its_last_versions
            views::the_log_of_a_run_is_kept_until_it_is_old
            users::of_first_administrators_made_at_once_one_stands
            users::a_user_comes_back_as_it_was_written
            users::the_last_administrator_stays
            users::a_session_ends_with_its_time_its_user_or_a_change
            users::the_last_origins_of_a_user_are_known
            users::an_api_key_has_some_of_its_users_rights
            users::the_audit_is_one_unbroken_chain_whoever_writes
            crowds::claimers_at_once_neither_double_nor_lose_a_fire
            crowds::claimers_of_waiting_runs_neither_double_nor_lose_one
            crowds::of_many_endings_at_once_one_counts
            crowds::shards_that_end_at_once_open_the_children_once
            crowds::one_place_is_never_held_by_two
            crowds::triggers_at_once_open_one_run
            crowds::joins_at_once_get_different_epochs
            crowds::batches_at_once_all_succeed_and_a_key_is_one_job
            crashes::a_claim_cut_anywhere_leaves_all_or_nothing
            crashes::a_claim_of_waiting_runs_cut_anywhere_leaves_all_or_nothing
            crashes::a_move_cut_anywhere_leaves_all_or_nothing
            crashes::an_ending_cut_anywhere_leaves_all_or_nothing
            crashes::a_control_cut_anywhere_leaves_all_or_nothing
            crashes::a_batch_cut_anywhere_leaves_all_or_nothing
            crashes::an_answer_cut_anywhere_leaves_all_or_nothing
            crashes::a_claim_with_an_unknown_commit_is_found_by_its_owner
            crashes::an_ending_with_an_unknown_commit_is_harmless_to_repeat
        }
    };
    ($fresh:path => $($group:ident::$name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(fresh) = $fresh().await {
                    $crate::conformance::$group::$name(fresh).await;
                }
            }
        )*

        #[test]
        fn no_function_of_the_suite_is_forgotten() {
            let written = $crate::conformance::FUNCTIONS;
            let listed = [$(stringify!($name)),*];
            assert_eq!(written.matches("pub async fn ").count(), listed.len());
        }
    };
}

/// Source text of all tests, to check the list above.
#[doc(hidden)]
pub const FUNCTIONS: &str = concat!(
    include_str!("agenda.rs"),
    include_str!("alerts.rs"),
    include_str!("apps.rs"),
    include_str!("backfills.rs"),
    include_str!("batches.rs"),
    include_str!("calendars.rs"),
    include_str!("claims.rs"),
    include_str!("control.rs"),
    include_str!("crashes.rs"),
    include_str!("crowds.rs"),
    include_str!("declarations.rs"),
    include_str!("dependencies.rs"),
    include_str!("endings.rs"),
    include_str!("history.rs"),
    include_str!("traces.rs"),
    include_str!("nodes.rs"),
    include_str!("users.rs"),
    include_str!("places.rs"),
    include_str!("records.rs"),
    include_str!("resume.rs"),
    include_str!("views.rs"),
    include_str!("workflows.rs"),
);
