# frozen_string_literal: true

# The application that the tests run with Sidekiq: its jobs, and the settings of its clients and worker processes. Knows nothing
# about which server answers; REDIS_URL aims it.

require "sidekiq"
require_relative "reliable_fetch"

# Debian's redis gem warns of what its next version will change, at each push.
Redis.sadd_returns_boolean = false

Sidekiq.configure_server do |config|
  # Seconds between looks at what is due. The default is for large installations.
  config.options[:poll_interval_average] = 0.2
  config.options[:fetch] = ReliableFetch.new(config.options) if ENV["RELIABLE_FETCH"]
end

# Counts itself in the hash `done`, as an application would write down its results.
class Work
  include Sidekiq::Worker

  sidekiq_options retry: 3, backtrace: 5
  sidekiq_retry_in { 1 }

  def perform(number, options = {})
    tries = Sidekiq.redis { |redis| redis.hincrby("tries", number, 1) }
    raise "job #{number}, try #{tries}" if tries <= options.fetch("failures", 0)

    # Once only: the job that a worker did not finish is quick the next time.
    sleep(options["sleep"]) if options["sleep"] && tries == 1
    # Long enough that a process which is killed has jobs at hand.
    sleep(0.01)
    Sidekiq.redis do |redis|
      redis.rpush("order", number)
      redis.hset("done-at", number, Time.now.to_f)
      # Last: a test that counts the job finds the rest of it.
      redis.hincrby("done", number, 1)
    end
  end
end

class Hopeless
  include Sidekiq::Worker

  sidekiq_options retry: 0

  def perform(why)
    raise why
  end
end
