# frozen_string_literal: true

# A fetch strategy that loses no job when a process is killed, as Sidekiq Pro and other extensions have one: LMOVE to a list of
# the process instead of BRPOP. A process that starts puts the jobs of dead ones back.

require "sidekiq"
require "sidekiq/fetch"
require "sidekiq/util"

class ReliableFetch
  include Sidekiq::Util

  WAIT_SECONDS = 1

  Job = Struct.new(:queue, :working, :job) do
    def acknowledge
      Sidekiq.redis { |redis| redis.lrem(working, 1, job) }
    end

    def queue_name
      queue.delete_prefix("queue:")
    end

    def requeue
      Sidekiq.redis do |redis|
        redis.multi do |transaction|
          transaction.rpush(queue, job)
          transaction.lrem(working, 1, job)
        end
      end
    end
  end

  def initialize(options)
    @options = options
    @recovered = false
    @lock = Mutex.new
  end

  def retrieve_work
    @lock.synchronize do
      recover unless @recovered
      @recovered = true
    end
    queues.each do |queue|
      job = Sidekiq.redis { |redis| redis.lmove(queue, working(queue), "RIGHT", "LEFT") }
      return Job.new(queue, working(queue), job) if job
    end
    job = Sidekiq.redis { |redis| redis.blmove(queues.first, working(queues.first), "RIGHT", "LEFT", timeout: WAIT_SECONDS) }
    Job.new(queues.first, working(queues.first), job) if job
  end

  def bulk_requeue(_in_progress, _options)
    queues.each { |queue| put_back(working(queue), queue) }
  end

  private

  def queues
    @queues ||= @options[:queues].uniq.map { |queue| "queue:#{queue}" }
  end

  def working(queue)
    "working:#{queue}:#{identity}"
  end

  # The tests start a process when the one before is dead, so that all lists are those of dead ones.
  def recover
    queues.each do |queue|
      lists = Sidekiq.redis { |redis| redis.scan_each(match: "working:#{queue}:*", type: "list").to_a }
      lists.uniq.each { |list| put_back(list, queue) }
    end
  end

  def put_back(list, queue)
    Sidekiq.redis do |redis|
      while redis.lmove(list, queue, "LEFT", "RIGHT"); end
    end
  end
end
